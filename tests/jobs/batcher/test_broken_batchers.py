"""Batchers broken on purpose: each of them fails the check of what it breaks."""

from collections.abc import Awaitable, Callable

import pytest

from forge.core.errors import DatabaseUnavailable
from forge.jobs import batcher
from forge.jobs.batcher import DispatchBatcher, PendingJob, TenantQueue, _answer, _statement
from forge.jobs.prepare import PreparedJob
from forge.store.jobs import Dispatched
from tests.http.conftest import api_url
from tests.jobs.batcher import checks
from tests.jobs.batcher.conftest import Stage
from tests.jobs.batcher.test_batcher import secured_stage

__all__ = ["api_url", "secured_stage"]


class AnswersBeforeTheCommit(DispatchBatcher):
    async def _insert_batch(self, tenant: int | None, batch: list[PendingJob]) -> None:
        _answer(batch, None)
        await super()._insert_batch(tenant, batch)


class SpreadsFailures(DispatchBatcher):
    async def _insert_batch(self, tenant: int | None, batch: list[PendingJob]) -> None:
        try:
            await self._run(_statement(batch), tenant)
        except Exception as error:
            _answer(batch, error)
        else:
            _answer(batch, None)


class MixesTenants(DispatchBatcher):
    async def insert(self, job: PreparedJob, tenant: int | None = None) -> Dispatched:
        return await super().insert(job, None)


class ForgetsWaitingCalls(DispatchBatcher):
    def _end_insert(self, queue: TenantQueue, rows: int) -> None:
        queue.inserts -= 1
        queue.rows -= rows
        self._inserts -= 1


class WakesNoWorker(DispatchBatcher):
    async def _insert_batch(self, tenant: int | None, batch: list[PendingJob]) -> None:
        await self._run(_statement(batch), tenant)
        _answer(batch, None)


Check = Callable[[Stage], Awaitable[None]]
BROKEN: list[tuple[type[DispatchBatcher], Check]] = [
    (AnswersBeforeTheCommit, checks.each_call_returns_after_its_own_commit),
    (SpreadsFailures, checks.one_refused_call_fails_alone),
    (ForgetsWaitingCalls, checks.every_waiting_call_is_served),
    (WakesNoWorker, checks.workers_are_woken_after_a_shared_insert),
]


@pytest.mark.parametrize(("broken", "check"), BROKEN)
async def test_a_broken_batcher_is_caught(
    stage: Stage,
    broken: type[DispatchBatcher],
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.jobs.batcher.conftest.TIMEOUT", 2)
    monkeypatch.setattr("tests.jobs.batcher.checks.TIMEOUT", 2)
    monkeypatch.setattr(batcher, "MAX_ROWS", 4)
    await stage.use(broken)

    with pytest.raises((AssertionError, TimeoutError, DatabaseUnavailable)):
        await check(stage)


async def test_a_batcher_that_mixes_tenants_is_caught(secured_stage: Stage) -> None:
    await secured_stage.use(MixesTenants)

    with pytest.raises(AssertionError):
        await checks.each_insert_runs_as_the_tenant_of_its_jobs(secured_stage)
