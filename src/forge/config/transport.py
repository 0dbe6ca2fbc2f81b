"""Settings of the transport: how workers learn about new jobs."""

from datetime import timedelta
from typing import Literal

from pydantic import ValidationInfo, field_validator

from forge.config.sources import Section
from forge.config.values import Duration, Names, NonEmptyText
from forge.core.duration import format_duration
from forge.core.errors import InvalidValue
from forge.core.job import PriorityName


class RouteConfig(Section):
    """The jobs that use another SQS queue; an omitted condition matches every job."""

    queue_url: NonEmptyText
    priorities: tuple[PriorityName, ...] = ()
    capabilities: Names = ()
    queues: Names = ()


class SqsConfig(Section):
    """The SQS queues, and the timeouts of their workers."""

    # For jobs that match no route; without it workers find them by polling PostgreSQL.
    queue_url: NonEmptyText | None = None
    routes: tuple[RouteConfig, ...] = ()
    region: NonEmptyText | None = None
    endpoint_url: NonEmptyText | None = None
    visibility_timeout: Duration = timedelta(minutes=1)
    wait: Duration = timedelta(seconds=5)
    locked_timeout: Duration = timedelta(minutes=10)
    resend_after: Duration = timedelta(minutes=1)

    @field_validator("visibility_timeout")
    @classmethod
    def _is_what_sqs_allows(cls, value: timedelta) -> timedelta:
        return _within(value, timedelta(seconds=3), timedelta(hours=12))

    @field_validator("wait")
    @classmethod
    def _is_as_long_as_sqs_waits(cls, value: timedelta) -> timedelta:
        return _within(value, timedelta(seconds=1), timedelta(seconds=20))

    @field_validator("routes")
    @classmethod
    def _has_a_queue(
        cls, routes: tuple[RouteConfig, ...], given: ValidationInfo
    ) -> tuple[RouteConfig, ...]:
        if not routes and given.data.get("queue_url") is None:
            raise InvalidValue("must have an entry if [transport.sqs] has no queue_url")
        return routes


class TransportConfig(Section):
    """How workers learn about new jobs; the jobs themselves are always in PostgreSQL."""

    kind: Literal["postgres", "sqs"] = "postgres"
    sqs: SqsConfig | None = None

    @field_validator("sqs")
    @classmethod
    def _is_there(cls, sqs: SqsConfig | None, given: ValidationInfo) -> SqsConfig | None:
        if sqs is None and given.data.get("kind") == "sqs":
            raise InvalidValue('is required for kind = "sqs": add [transport.sqs] with a queue_url')
        return sqs

    @property
    def queues(self) -> SqsConfig | None:
        """The settings of SQS if it is the transport, else None."""
        return self.sqs if self.kind == "sqs" else None


def _within(value: timedelta, least: timedelta, most: timedelta) -> timedelta:
    if least <= value <= most and not value.microseconds:
        return value
    raise InvalidValue(
        f"must be whole seconds from {format_duration(least)} to {format_duration(most)}, "
        f"not {format_duration(value)}"
    )
