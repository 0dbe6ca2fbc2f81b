"""Schedule runs are measured and logged like attempts of jobs."""

import logging

import pytest

from forge import ScheduleContext
from forge.cli.processes.metrics_output import measured
from forge.telemetry.logs.listener import log_events
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.telemetry.exposed import shown


async def test_runs_are_measured_and_logged_by_their_type(
    make_app: MakeApp, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(metrics_port=0)
    caplog.set_level(logging.INFO, "forge")
    log_events(app.events)

    @app.schedule("tick", every="50ms")
    async def tick(ctx: ScheduleContext) -> None:
        if not ctx.is_retry:
            raise ValueError("again")

    made = await app.schedules.ensure(tick, tenant_id=7)
    completed = ("job_processed_total", "tick", "completed")
    worker = await work(app)
    async with measured(worker, None):
        await until(
            lambda: shown(app.metrics.worker.registry).get(completed), 20, "it has succeeded"
        )
        samples = shown(app.metrics.worker.registry)

    assert samples["job_processed_total", "tick", "retry"] >= 1
    assert samples["job_processing_duration_seconds_count", "tick", "completed"] >= 1
    assert samples["job_queue_latency_milliseconds_count", "tick"] >= 2
    first, second, *_ = [line for line in caplog.records if hasattr(line, "job_type")]
    logged = [(line.job_type, str(line.job_id), line.tenant_id) for line in (first, second)]
    assert logged == 2 * [("tick", str(made.id), 7)]
    assert [(line.outcome, line.state) for line in (first, second)] == [
        ("retry", "failed_retryable"),
        ("completed", "completed"),
    ]
    assert first.error == "ValueError: again"
