"""A 403 names every role that the token lacks, and no other."""

import httpx
import pytest

from tests.http.conftest import MakeToken
from tests.http.job_client import code


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        (("user",), "this route requires the roles staff and manager; use a token that has both"),
        (("staff",), "this route requires the role manager; use a token that has it"),
        (("user", "manager"), "this route requires the role staff; use a token that has it"),
    ],
)
async def test_forbidden_names_all_missing_roles(
    http: httpx.AsyncClient, token: MakeToken, roles: tuple[str, ...], says: str
) -> None:
    path = "/api/jobs/admin/dlq/1/discard/"

    answer = await http.post(path, json={"notes": "x"}, headers=token(*roles))

    assert code(answer) == (403, "forbidden")
    assert answer.json()["detail"] == says


async def test_forbidden_names_staff(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.get("/_api/workers", headers=token("user"))

    assert answer.json()["detail"] == "this route requires the role staff; use a token that has it"
