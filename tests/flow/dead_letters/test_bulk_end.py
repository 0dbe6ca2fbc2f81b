"""How reprocessing many ends: with what became of the jobs it made, or without waiting for ever."""

from typing import Any

from forge import Forge
from tests.faults.kit.process import until
from tests.flow.dead_letters.conftest import Flaky
from tests.flow.dead_letters.letters import fill
from tests.flow.engine.conftest import Work


async def test_the_last_jobs_that_fail_again_are_told_of(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 3)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    report = await handle.result(60)

    assert report["failed_again"] == 3
    assert (report["succeeded"], report["unfinished"], report["stopped"]) == (0, 0, None)


async def test_too_many_that_fail_again_at_the_very_end_are_a_reason_to_stop(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 3)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0, max_failures=2)
    report = await handle.result(60)

    assert "jobs failed again" in report["stopped"]


async def test_jobs_that_do_not_end_are_not_waited_for_longer_than_canaries(
    app: Forge, work: Work, psql: Any
) -> None:
    await fill(psql, 4, "nobody_has_this")
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0, canary_timeout="1s")
    report = await handle.result(60)

    assert (report["reprocessed"], report["unfinished"], report["stopped"]) == (4, 4, None)


async def test_a_canary_that_somebody_cancels_has_not_completed(
    app: Forge, work: Work, psql: Any
) -> None:
    await fill(psql, 4, "nobody_has_this")
    await work(app)
    handle = await app.dead_letters.reprocess_many(rate=1000, canary=1)
    made = "select id from forge_jobs where retry_of is not null"
    canary = await until(lambda: psql.fetchval(made), 20, "the canary is there")

    await app.handle(canary).cancel()
    report = await handle.result(60)

    assert report["stopped"] == "a canary was cancelled"
    assert (report["reprocessed"], report["cancelled"]) == (1, 1)
