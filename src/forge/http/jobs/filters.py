"""The query parameters that filter jobs, for every route that lists or counts them."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request
from pydantic import AwareDatetime

from forge.core.job_content import MAX_INPUT_VALUES, MAX_LENGTH
from forge.core.job_filter import InputValue, JobCriteria, JobFilter
from forge.core.lifecycle import State, Status
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.http.fields import Name, TenantId
from forge.http.problems.problem import Fault, invalid

PRIORITIES = "^(?i:critical|high|normal|low|background|100|75|50|25|0)$"
INPUT = "input."


def job_filter(
    status: Status | None = None,
    state: State | None = None,
    type: Annotated[Name | None, Query(description="The job type.")] = None,
    queue: Name | None = None,
    priority: Annotated[
        str | None, Query(description="By name or value.", pattern=PRIORITIES)
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="Created at or after.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Created before.")] = None,
    category: Category | None = None,
    correlation_id: UUID | None = None,
    parent_id: Annotated[
        UUID | None, Query(description="The job whose handler dispatched them.")
    ] = None,
    retry_of: Annotated[UUID | None, Query(description="The job that they do again.")] = None,
    tenant_id: Annotated[
        TenantId | None, Query(description="For operators; others can only name their own.")
    ] = None,
    worker_id: Annotated[
        UUID | None, Query(description="The worker that claimed them last.")
    ] = None,
    tag: Name | None = None,
    error_class: ErrorClass | None = None,
    idempotency_key: Name | None = None,
) -> JobFilter:
    """Read the filter of a request; the route restricts it to the caller's tenant."""
    criteria: JobCriteria = {
        "status": status,
        "state": state,
        "type": type,
        "queue": queue,
        "since": since,
        "until": until,
        "category": category,
        "correlation_id": correlation_id,
        "parent_id": parent_id,
        "retry_of": retry_of,
        "tenant_id": tenant_id,
        "worker_id": worker_id,
        "tag": tag,
        "error_class": error_class,
        "idempotency_key": idempotency_key,
    }
    if priority is not None:
        named: Any = int(priority) if priority.isdigit() else priority
        criteria["priority"] = named
    return JobFilter.of(criteria)


def input_values(
    request: Request,
    declared: Annotated[
        str | None,
        Query(
            alias="input.*",
            max_length=MAX_LENGTH,
            description="A value in the input, as shown, with its path in the parameter's name: "
            "`input.order_id=42`, `input.items.0.sku=A7`. May be repeated for several paths.",
        ),
    ] = None,
) -> list[InputValue]:
    """Read the conditions on values in the input."""
    given = [
        InputValue(name.removeprefix(INPUT), value)
        for name, value in request.query_params.multi_items()
        if name.startswith(INPUT)
    ]
    if len(given) > MAX_INPUT_VALUES:
        raise invalid([Fault("query.input.*", f"takes at most {MAX_INPUT_VALUES} values")])
    for path, value in given:
        if not path or max(len(path), len(value)) > MAX_LENGTH:
            fault = Fault(
                f"query.{INPUT}{path[:50]}",
                f"path and value have from 1 to {MAX_LENGTH} characters",
            )
            raise invalid([fault])
    return given


Filter = Annotated[JobFilter, Depends(job_filter)]
InputValues = Annotated[list[InputValue], Depends(input_values)]
