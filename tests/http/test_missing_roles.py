"""A 403 names every role that the token lacks, and no other."""

import httpx
import pytest

from tests.http.conftest import MakeToken
from tests.http.jobs import code


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        (("user",), "this needs the roles staff and manager; ask for a token that has both"),
        (("staff",), "this needs the role manager; ask for a token that has it"),
        (("user", "manager"), "this needs the role staff; ask for a token that has it"),
    ],
)
async def test_both_roles_are_named_where_both_are_missing(
    http: httpx.AsyncClient, token: MakeToken, roles: tuple[str, ...], says: str
) -> None:
    path = "/api/jobs/admin/dlq/1/discard/"

    answer = await http.post(path, json={"notes": "x"}, headers=token(*roles))

    assert code(answer) == (403, "forbidden")
    assert answer.json()["detail"] == says


async def test_a_route_for_staff_names_staff(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.get("/_api/workers", headers=token("user"))

    assert answer.json()["detail"] == "this needs the role staff; ask for a token that has it"
