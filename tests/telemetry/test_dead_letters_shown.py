"""Dead letters under review are reported by type, from the first registered type on."""

from forge import Forge, JobContext, NonRetryable
from forge.store.connection.database import Database
from forge.telemetry.metrics.queue_figures import QueueWatch
from forge.telemetry.metrics.registries import Metrics
from tests.apps import Work
from tests.faults.kit.process import until
from tests.telemetry.exposed import shown


async def test_dead_letters_are_shown_from_none_to_some_and_back(
    app: Forge, work: Work, database: Database
) -> None:
    @app.job
    async def fail(ctx: JobContext) -> None:
        raise NonRetryable("never")

    metrics = Metrics().worker
    watch = QueueWatch(metrics.queue, 6.0)

    async def are_shown(letters: int) -> bool:
        await watch.refresh(database.run)
        return shown(metrics.registry).get(("forge_dead_letters", "fail")) == letters

    await work(app)
    await until(lambda: are_shown(0), 20, "the type is known and has none")

    for _ in range(2):
        await app.dispatch(fail)
    await until(lambda: are_shown(2), 20, "both wait for review")

    for letter in (await app.dead_letters.list()).items:
        await app.dead_letters.discard(letter.dlq_id, notes="seen")
    assert await are_shown(0)
