"""AWS for handlers: boto3 clients that emit an event for each call, with its target."""

from typing import Any

import pytest

from forge import Forge
from forge.core.events import Event, ExternalCall
from forge.integrations.aws import client
from forge.telemetry.metrics.external_calls import measure_services
from forge.telemetry.metrics.registries import ApiMetrics, WorkerMetrics
from tests.transports.conftest import REGION

IN_EUROPE = {"LocationConstraint": REGION}


@pytest.fixture
def calls(sqs_app: Forge) -> list[ExternalCall]:
    seen: list[ExternalCall] = []

    def listen(event: Event) -> None:
        if isinstance(event, ExternalCall):
            seen.append(event)

    sqs_app.events.listeners.append(listen)
    return seen


@pytest.fixture
def s3(sqs_app: Forge, aws: str) -> Any:
    return client(sqs_app, "s3", endpoint_url=aws, region_name=REGION)


async def test_a_call_emits_an_event_with_its_target_and_time(
    s3: Any, calls: list[ExternalCall]
) -> None:
    s3.create_bucket(Bucket="seen", CreateBucketConfiguration=IN_EUROPE)
    s3.put_object(Bucket="seen", Key="a", Body=b"abc")

    assert s3.get_object(Bucket="seen", Key="a")["Body"].read() == b"abc"

    assert [(call.service, call.operation, call.target, call.error_code) for call in calls] == [
        ("s3", "CreateBucket", "seen", None),
        ("s3", "PutObject", "seen", None),
        ("s3", "GetObject", "seen", None),
    ]
    assert all(0 < call.seconds < 60 for call in calls)


async def test_an_error_of_aws_is_recorded_by_its_code(s3: Any, calls: list[ExternalCall]) -> None:
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.get_object(Bucket="nowhere", Key="a")

    assert [(call.target, call.error_code) for call in calls] == [("nowhere", "NoSuchBucket")]


async def test_a_call_without_a_response_is_recorded_by_its_exception(
    sqs_app: Forge, calls: list[ExternalCall]
) -> None:
    from botocore.config import Config
    from botocore.exceptions import EndpointConnectionError

    once = Config(retries={"total_max_attempts": 1})
    away = client(
        sqs_app, "cloudfront", endpoint_url="http://127.0.0.1:9", region_name=REGION, config=once
    )

    with pytest.raises(EndpointConnectionError):
        away.list_distributions()

    (call,) = calls
    assert (call.service, call.operation) == ("cloudfront", "ListDistributions")
    assert (call.target, call.error_code) == (None, "EndpointConnectionError")


async def test_each_service_feeds_its_own_metrics(sqs_app: Forge) -> None:
    worker, api = WorkerMetrics(), ApiMetrics()
    measure_services(sqs_app.events, worker)
    measure_services(sqs_app.events, api)

    for call in (
        ExternalCall("s3", "PutObject", "images", 0.2, None),
        ExternalCall("s3", "GetObject", "images", 0.2, "NoSuchKey"),
        ExternalCall("cloudfront", "CreateInvalidation", "E1", 0.2, "Throttling"),
        ExternalCall("sns", "Publish", None, 0.2, None),
    ):
        sqs_app.events.emit(call)

    assert _counts(worker) == {
        ("s3_operation_duration_seconds", ("PutObject", "images")): 1,
        ("s3_operation_duration_seconds", ("GetObject", "images")): 1,
        ("s3_operation_errors_total", ("GetObject", "images", "NoSuchKey")): 1,
        ("cloudfront_operation_duration_seconds", ("CreateInvalidation",)): 1,
        ("cloudfront_operation_errors_total", ("CreateInvalidation", "Throttling")): 1,
        ("external_duration_seconds", ("sns", "Publish")): 1,
    }
    assert ("external_duration_seconds", ("s3", "PutObject")) in _counts(api)


def _counts(metrics: ApiMetrics | WorkerMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    counted = {}
    for name, labels, amount, *_ in metrics.drain():
        counted[name, tuple(labels)] = sum(amount) if isinstance(amount, list) else amount
    return counted
