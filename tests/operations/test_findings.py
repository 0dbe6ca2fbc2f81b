"""Findings that need a person, each from the rows that cause it."""

import re
from pathlib import Path
from typing import Any

import pytest

import forge.operations.findings
from forge import Forge
from forge.core.finding import Finding
from forge.core.lifecycle import Status
from forge.operations.findings import work
from forge.store.connection.database import Database
from tests.operations.test_overview import BURY, FAILED
from tests.store.placing import Psql, insert, placed, registered

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
CHECKS = Path(forge.operations.findings.__file__).parent


async def found(app: Forge, code: str) -> list[Finding]:
    return [finding for finding in await app.findings() if finding.code == code]


async def test_a_pause_is_found_with_who_until_when_and_why(app: Forge) -> None:
    await app.pause("mail", reason="full", actor="ann")
    await app.pause(queue="slow", for_="1h", reason="moving")

    first, second = await found(app, "paused")

    assert first.severity == "info"
    assert first.message == "type mail is paused by ann until it is resumed: full"
    assert (first.facts["job_type"], first.facts["actor"]) == ("mail", "ann")
    assert re.match(r"queue slow is paused until 20..-..-.. ..:.. UTC: moving", second.message)
    assert second.facts["until"] is not None


async def test_a_drained_worker_is_found(app: Forge, database: Database) -> None:
    worker = (await registered(database)).id
    await app.workers.drain(worker, reason="upgrade", actor="ann")

    (finding,) = await found(app, "drained_worker")

    assert finding.message.endswith("is drained by ann: upgrade")
    assert finding.facts["worker_id"] == str(worker)


async def test_schedules_that_failed_three_times_in_a_row_are_found(
    app: Forge, psql: "Psql[Any]"
) -> None:
    await psql.execute(FAILED)

    (finding,) = await found(app, "failing_schedules")

    assert finding.message == "1 schedule failed 3 times in a row or more: fetch b"
    assert finding.facts["schedules"][0]["consecutive_failures"] == 4


async def test_new_dead_letters_are_found_and_old_ones_are_not(
    app: Forge, psql: "Psql[Any]"
) -> None:
    await psql.execute(BURY)
    await psql.execute("update forge_dead_letters set dlq_id = 4")
    assert await found(app, "dead_letters_grow") == []
    await psql.execute(BURY)

    (finding,) = await found(app, "dead_letters_grow")

    assert finding.message == "1 new dead letter in the last 15 minutes, of type mail"
    assert finding.facts == {"count": 1, "by_type": {"mail": 1}}


async def test_due_jobs_that_live_workers_do_not_process_are_found(
    app: Forge, database: Database, psql: "Psql[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await registered(database)
    await insert(psql)
    assert await found(app, "nothing_consumed") == []
    monkeypatch.setattr(work, "STUCK_AFTER", 0.0)

    (finding,) = await found(app, "nothing_consumed")
    await psql.execute(
        "insert into forge_statistics (minute, job_type, queue, completed) "
        "values (date_trunc('minute', now()), 'work', 'default', 1)"
    )
    once_counted = await found(app, "nothing_consumed")
    await psql.execute("delete from forge_statistics")
    await placed(psql, Status.RUNNING, worker=worker.id)
    while_running = await found(app, "nothing_consumed")

    assert (finding.severity, finding.facts["job_type"]) == ("problem", "work")
    assert once_counted == while_running == []


async def test_problems_come_first(app: Forge, psql: "Psql[Any]") -> None:
    await insert(psql)
    await app.pause("mail", reason="full")

    severities = [finding.severity for finding in await app.findings()]

    assert severities == sorted(severities, key=["problem", "warning", "info"].index)
    assert severities[0] == "problem"


def test_the_documentation_lists_every_code_with_its_severity() -> None:
    text = "".join(path.read_text() for path in CHECKS.glob("*.py"))
    made = set(re.findall(r'\b(info|warning|problem)\(\s*f?"([a-z_]+)"', text))
    made |= {("problem", "disabled_trigger"), ("problem", "disabled_index")}
    one = "(?:info|warning|problem)"
    lines = re.findall(rf"^\| `([a-z_]+)` \| ({one}(?:, {one})*) \|", PAGE.read_text(), re.M)

    assert {(severity, code) for code, cell in lines for severity in cell.split(", ")} == made
