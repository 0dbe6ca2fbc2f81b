"""A 404 names what is missing, and no command that only an operator can run."""

from uuid import UUID

import httpx
import pytest

from forge import Forge
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code

NO_ID = UUID(int=0)


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/_api/jobs/{NO_ID}", None),
        ("GET", f"/_api/schedules/{NO_ID}", None),
        ("POST", f"/_api/schedules/{NO_ID}/enable", {}),
        ("GET", "/api/jobs/admin/dlq/1/", None),
        ("POST", "/api/jobs/admin/dlq/1/reprocess/", {"notes": "again"}),
        ("POST", "/api/jobs/admin/dlq/1/discard/", {"notes": "no"}),
        ("POST", "/_api/jobs/no_such_type/dispatch", {}),
    ],
)
async def test_a_404_recommends_no_command(
    http: httpx.AsyncClient, token: MakeToken, method: str, path: str, body: object
) -> None:
    headers = token("user", "staff", "manager")

    answer = await http.request(method, path, json=body, headers=headers)

    assert code(answer)[0] == 404
    assert not any(word in answer.json()["detail"] for word in ("`", "forge ", "app."))
