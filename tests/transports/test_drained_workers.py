"""A drained worker whose jobs arrive by message takes none, and returns what still arrives."""

from typing import Any

from forge import Forge, JobContext
from tests.apps import Work
from tests.faults.kit.process import until


async def test_a_drained_worker_returns_messages_for_others(
    sqs_app: Forge, work: Work, sqs: Any, queue: str
) -> None:
    @sqs_app.job
    async def echo(ctx: JobContext) -> str:
        return "ran"

    worker = await work(sqs_app)
    await sqs_app.workers.drain(worker.registration.id)
    await until(lambda: worker.held.is_drained, 20, "it knows that it is drained")
    handle = await echo.dispatch()
    asked = {"QueueUrl": queue, "AttributeNames": ["ApproximateNumberOfMessages"]}

    def is_visible() -> bool:
        counted = sqs.get_queue_attributes(**asked)["Attributes"]
        return counted["ApproximateNumberOfMessages"] == "1"

    await until(is_visible, 20, "the message was sent, and waits in the queue")
    assert (await handle.get()).status == "pending"

    await sqs_app.workers.resume(worker.registration.id)
    assert await handle.result(20) == "ran"
