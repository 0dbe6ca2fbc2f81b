"""A real HTTP server that speaks SQS, queues on it, and apps whose word goes through them."""

import os
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest

from forge import Forge
from tests.apps import MakeApp, make_app, work
from tests.transports.hostile import Hostile, moto_server

__all__ = ["make_app", "work"]

REGION = "eu-west-1"
MakeQueue = Callable[..., str]


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    """The address of moto's server."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    with moto_server() as address:
        yield address


@pytest.fixture
def sqs(aws: str) -> Any:
    """SQS as another program sees it, not through the hostile proxy."""
    return boto3.client("sqs", endpoint_url=aws, region_name=REGION)


@pytest.fixture
def make_queue(sqs: Any) -> MakeQueue:
    def make() -> str:
        url: str = sqs.create_queue(QueueName=f"forge-{uuid4().hex}")["QueueUrl"]
        return url

    return make


@pytest.fixture
def queue(make_queue: MakeQueue) -> str:
    return make_queue()


@pytest.fixture
def hostile(aws: str) -> Iterator[Hostile]:
    """A proxy before moto, which behaves until a test makes it hostile."""
    with Hostile(aws) as proxy:
        yield proxy


@pytest.fixture
def make_sqs_app(make_app: MakeApp, aws: str, queue: str) -> Callable[..., Forge]:
    """Make apps whose transport is SQS; `sqs` holds settings of [transport.sqs]."""

    def make(sqs: dict[str, Any] | None = None, **settings: Any) -> Forge:
        return make_app(transport=transport(aws, queue, **(sqs or {})), **settings)

    return make


@pytest.fixture
def sqs_app(make_sqs_app: Callable[..., Forge]) -> Forge:
    return make_sqs_app()


def transport(endpoint: str, queue: str | None, **settings: Any) -> dict[str, Any]:
    """The section [transport] for a queue on this server."""
    quick = {"wait": "1s", "visibility_timeout": "5s", "resend_after": "2s"}
    address = {"queue_url": queue, "region": REGION, "endpoint_url": endpoint}
    return {"kind": "sqs", "sqs": quick | address | settings}


def waiting(sqs: Any, queue: str) -> int:
    """How many messages a queue has, visible, in flight or delayed."""
    names = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    ]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)
