"""Definitions as rows of forge_job_types, for processes that do not have their code."""

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from forge.core.duration import format_duration
from forge.core.key import BY_FUNCTION
from forge.core.payload import encode
from forge.registry import JobDefinition
from forge.store.job_types import JobTypeRow
from forge.store.schedule_types import ScheduleTypeRow


def type_rows(definitions: Iterable[JobDefinition[Any, Any]]) -> list[JobTypeRow]:
    """Return what other processes need to know of these types."""
    return [_row(definition) for definition in definitions]


def schedule_type_rows(
    definitions: Iterable[JobDefinition[Any, Any]],
) -> list[ScheduleTypeRow]:
    """Return what other processes need to know of these types of schedules."""
    return [
        ScheduleTypeRow(
            definition.name,
            definition.defaults.priority,
            definition.defaults.worker_capability,
            _schema(definition.input_adapter, "validation"),
        )
        for definition in definitions
    ]


def _row(definition: JobDefinition[Any, Any]) -> JobTypeRow:
    known = definition.defaults
    return JobTypeRow(
        name=known.name,
        queue=known.queue,
        priority=known.priority,
        max_attempts=known.max_attempts,
        timeout=definition.timeout,
        worker_capability=known.worker_capability,
        category=known.category,
        requires=None if known.requires is None else encode(list(known.requires)),
        allow_sensitive=encode(list(known.allow_sensitive)),
        idempotent=BY_FUNCTION if callable(known.idempotent) else known.idempotent,
        dead_letter=definition.dead_letter,
        isolation="process" if definition.kind == "process" else "none",
        retry=_retry(definition),
        input_schema=_schema(definition.input_adapter, "validation"),
        output_schema=_schema(definition.output_adapter, "serialization"),
    )


def _retry(definition: JobDefinition[Any, Any]) -> str | None:
    if definition.retry is None:
        return None
    return encode(
        {
            "backoff": definition.retry.backoff,
            "max_backoff": format_duration(definition.retry.max_backoff),
        }
    )


def _schema(adapter: TypeAdapter[Any] | None, mode: Any) -> str | None:
    if adapter is None:
        return None
    try:
        return encode(adapter.json_schema(mode=mode), what="a schema")
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return None  # a type that JSON Schema has no words for is checked by its own code alone
