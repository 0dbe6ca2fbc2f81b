"""The JSON Schemas of all jobs of an app, with one definition for each model."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from forge.core.typescript.names import DescribedJob
from forge.definitions.job import JobDefinition

ANY: dict[str, Any] = {}
OBJECT: dict[str, Any] = {"type": "object"}
NULL: dict[str, Any] = {"type": "null"}
INPUT: JsonSchemaMode = "validation"
OUTPUT: JsonSchemaMode = "serialization"


class JobSchemas(NamedTuple):
    """Jobs whose schemas refer to `definitions`."""

    jobs: list[DescribedJob]
    definitions: dict[str, Any]
    # What JSON Schema cannot describe, such as "the input of import_file".
    undescribed: list[str]


def describe_jobs(jobs: Iterable[JobDefinition[Any, Any]]) -> JobSchemas:
    """Describe jobs; the result does not depend on their order."""
    ordered = sorted(jobs, key=lambda job: job.name)
    schemas, shared = TypeAdapter.json_schemas(
        [(job.name, mode, adapter) for job in ordered for mode, adapter in _adapters(job)],
        schema_generator=_SharedSchemas,
    )
    described = [_described(job, schemas) for job in ordered]
    return JobSchemas(described, shared.get("$defs", {}), [*_undescribed(ordered)])


def _described(
    job: JobDefinition[Any, Any], schemas: Mapping[tuple[str, JsonSchemaMode], Any]
) -> DescribedJob:
    has_input = job.takes_input and job.input_type is not type(None)
    input_schema = schemas.get((job.name, INPUT), _plain(job.input_type))
    return DescribedJob(
        name=job.name,
        doc=job.job_type.description,
        input=input_schema if has_input else None,
        output=schemas.get((job.name, OUTPUT), _plain(job.output_type)),
        makes_keys=job.job_type.idempotent is not None,
    )


def _adapters(job: JobDefinition[Any, Any]) -> Iterator[tuple[JsonSchemaMode, TypeAdapter[Any]]]:
    """Return the types of a job that JSON Schema can describe."""
    if job.input_adapter is not None and job.job_type.input_schema is not None:
        yield INPUT, job.input_adapter
    if job.output_adapter is not None and job.job_type.output_schema is not None:
        yield OUTPUT, job.output_adapter


def _undescribed(jobs: Iterable[JobDefinition[Any, Any]]) -> Iterator[str]:
    for job in jobs:
        if job.input_adapter is not None and job.job_type.input_schema is None:
            yield f"the input of {job.name}"
        if job.output_adapter is not None and job.job_type.output_schema is None:
            yield f"the output of {job.name}"


def _plain(hint: Any) -> dict[str, Any]:
    """Return the schema of a type that needs no validation."""
    if hint in (dict, dict[str, Any]):
        return OBJECT
    return NULL if hint is type(None) else ANY


class _SharedSchemas(GenerateJsonSchema):
    """Names definitions after their classes, and requires fields that are always written."""

    # A default that JSON cannot write is left out without a warning.
    ignored_warning_kinds = GenerateJsonSchema.ignored_warning_kinds | {"non-serializable-default"}

    def normalize_name(self, name: str) -> str:
        """Keep letters of every language."""
        return re.sub(r"[^\w.-]", "_", name).replace(".", "__")

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether a field is always present; an output has those with defaults, too."""
        if self.mode == OUTPUT and field["type"] != "typed-dict-field":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)
