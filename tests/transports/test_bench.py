"""`forge bench` where SQS is the transport: others' messages are not its business."""

from typing import Any
from uuid import uuid4

from forge import Forge
from forge.cli.bench import measure
from forge.transports.sqs.queues import body_of
from tests.transports.conftest import waiting


async def test_a_measurement_leaves_the_messages_of_others_alone(
    sqs_app: Forge, sqs: Any, queue: str
) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody=body_of(uuid4()))

    measured = await measure(sqs_app, 100)

    assert measured.jobs_per_second > 0
    assert waiting(sqs, queue) == 1
