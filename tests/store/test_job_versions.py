"""Every change of a job grows its version by one, whatever makes it."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

import forge
from forge.core.lifecycle import Status
from tests.store.placing import Psql, insert, placed

SQL = Path(forge.__file__).parent / "sql"
UPDATES = sorted(
    path.relative_to(SQL).as_posix()
    for path in SQL.glob("*/*.sql")
    if path.parent.name != "migrations" and "update forge_jobs" in path.read_text()
)


@pytest.mark.parametrize("name", UPDATES)
def test_a_statement_counts_its_change_itself(name: str) -> None:
    """The trigger would do it, with a second update of each row."""
    (update,) = re.findall(r"update forge_jobs.*?\b(?:from|where)\b", _text(name), re.DOTALL)

    assert re.search(r"\bversion = (job\.)?version \+ 1\b", update)


def test_the_statements_of_the_life_of_a_job_are_among_them() -> None:
    assert {"jobs/claim.sql", "jobs/complete.sql", "jobs/note.sql"} < set(UPDATES)


async def test_a_new_job_has_version_0(psql: "Psql[Any]") -> None:
    assert await _version(psql, await insert(psql)) == 0


async def test_a_change_by_hand_is_counted(psql: "Psql[Any]") -> None:
    one, other = await insert(psql), await insert(psql)

    await psql.execute("update forge_jobs set progress_percent = 5 where id = $1", one)
    assert (await _version(psql, one), await _version(psql, other)) == (1, 0)
    async with psql.transaction():
        await psql.execute("update forge_jobs set progress_percent = 6")
        await psql.execute("update forge_jobs set tags = '{a}'")

    assert (await _version(psql, one), await _version(psql, other)) == (3, 2)


async def test_a_role_without_rights_on_the_version_changes_a_job(psql: "Psql[Any]") -> None:
    job_id, role = await insert(psql), f"clerk_{uuid4().hex}"
    await psql.execute(
        f"create role {role}; grant select, update (priority) on forge_jobs to {role};"
        f"create policy {role} on forge_jobs to {role} using (true)"
    )

    try:
        async with psql.transaction():
            await psql.execute(f"set local role {role}")
            await psql.execute("update forge_jobs set priority = 75")
        assert await _version(psql, job_id) == 1
    finally:
        await psql.execute(f"drop owned by {role}; drop role {role}")


async def test_a_refused_change_is_not_counted(psql: "Psql[Any]") -> None:
    job_id = await placed(psql, Status.COMPLETED, worker=uuid4())
    before = await _version(psql, job_id)

    with pytest.raises(asyncpg.CheckViolationError):
        await psql.execute("update forge_jobs set status = 'pending'")

    assert await _version(psql, job_id) == before


def _text(name: str) -> str:
    return re.sub(r"--.*", "", (SQL / name).read_text())


async def _version(psql: "Psql[Any]", job_id: UUID) -> int:
    version: int = await psql.fetchval("select version from forge_jobs where id = $1", job_id)
    return version
