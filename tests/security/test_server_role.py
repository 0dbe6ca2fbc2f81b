"""A server that logs in as the owner runs its own statements as forge_api."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.http.test_server_command import address, let_in

APP = """
from forge import Forge, JobContext, MutationContext

app = Forge()


@app.job
async def greet(ctx: JobContext, input: dict) -> None: ...


@app.mutation
async def register(ctx: MutationContext, input: dict) -> str:
    await ctx.db.execute("insert into users default values")
    return await ctx.db.fetchval("select current_user::text")
"""
# Records the role that wrote each job and user.
WITNESS = """
    create table users (id serial);
    create table seen (what text, role text);
    grant insert on seen to public;
    create function witness() returns trigger language plpgsql as
    $$ begin insert into seen values (tg_table_name, current_user); return new; end $$;
    create trigger witness before insert on users for each row execute function witness();
    create trigger witness before insert on forge_jobs for each row execute function witness();
"""


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> tuple[Project, dict[str, str]]:
    (tmp_path / "shop.py").write_text(APP)
    project = Project(database_url, tmp_path)
    token = let_in(project, "--role", "user")
    project.rows(WITNESS)
    return project, {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("is_pooled", [False, True])
def test_it_takes_the_role_for_its_own_statements_and_not_for_mutations(
    project: tuple[Project, dict[str, str]], *, is_pooled: bool
) -> None:
    shop, headers = project
    shop.env["FORGE_DATABASE_POOLER"] = str(is_pooled).lower()
    assert shop.forge("migrate", "--roles", "--app", "shop:app").returncode == 0
    with shop.start("server", "shop:app", "--port", "0") as child:
        at = address(child)
        for _ in range(2):
            sent = httpx.post(f"{at}/_api/jobs/greet/dispatch", json={"args": {}}, headers=headers)
            assert sent.status_code == 202, sent.text
        listed = httpx.get(f"{at}/_api/jobs", headers=headers).json()["items"]
        called = httpx.post(f"{at}/_api/mutations/register", json={}, headers=headers)
        said = "its own statements run as forge_api, mutations as "
        wait_until(lambda: said in child.output(), 10, "it logs its role")

    owner = shop.row("select current_user::text")[0]
    assert (called.status_code, called.json()) == (200, owner), called.text
    assert len(listed) == 2
    assert set(shop.rows("select * from seen")) == {("forge_jobs", "forge_api"), ("users", owner)}


def test_without_the_role_server_and_doctor_warn(
    project: tuple[Project, dict[str, str]],
) -> None:
    shop, headers = project
    shop.forge("migrate", "--app", "shop:app")
    with shop.start("server", "shop:app", "--port", "0") as child:
        at = address(child)
        warned = "has more rights on jobs than it needs"
        wait_until(lambda: warned in child.output(), 10, "it has warned")
        sent = httpx.post(f"{at}/_api/jobs/greet/dispatch", json={"args": {}}, headers=headers)
    findings = json.loads(shop.forge("doctor", "--json").stdout)["findings"]

    assert sent.status_code == 202
    (found,) = [each for each in findings if each["code"] == "excess_api_rights"]
    assert (found["severity"], warned in found["message"]) == ("warning", True)
