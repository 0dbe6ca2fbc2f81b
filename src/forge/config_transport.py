"""The settings of the transport: how word that there is work reaches a worker."""

from datetime import timedelta
from typing import Literal

from pydantic import ValidationInfo, field_validator

from forge.config_section import Section
from forge.config_values import Duration, Filled, Names
from forge.core.duration import format_duration
from forge.core.errors import InvalidValue
from forge.core.job import PriorityName


class RouteConfig(Section):
    """Which jobs go through a queue of their own; what is left out fits every job."""

    queue_url: Filled
    priorities: tuple[PriorityName, ...] = ()
    capabilities: Names = ()
    queues: Names = ()


class SqsConfig(Section):
    """Where the queues are, and how patient their workers."""

    # For jobs that no route fits; without it those are found by looking into PostgreSQL.
    queue_url: Filled | None = None
    routes: tuple[RouteConfig, ...] = ()
    region: Filled | None = None
    endpoint_url: Filled | None = None
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
            raise InvalidValue("must name a queue where [transport.sqs] has no queue_url")
        return routes


class TransportConfig(Section):
    """How a worker learns that there is work; PostgreSQL alone says what the work is."""

    kind: Literal["postgres", "sqs"] = "postgres"
    sqs: SqsConfig | None = None

    @field_validator("sqs")
    @classmethod
    def _is_there(cls, sqs: SqsConfig | None, given: ValidationInfo) -> SqsConfig | None:
        if sqs is None and given.data.get("kind") == "sqs":
            raise InvalidValue('is needed for kind = "sqs": add [transport.sqs] with a queue_url')
        return sqs

    @property
    def queues(self) -> SqsConfig | None:
        """The settings of SQS where it is the transport."""
        return self.sqs if self.kind == "sqs" else None


def _within(value: timedelta, least: timedelta, most: timedelta) -> timedelta:
    if least <= value <= most and not value.microseconds:
        return value
    raise InvalidValue(
        f"must be whole seconds from {format_duration(least)} to {format_duration(most)}, "
        f"not {format_duration(value)}"
    )
