"""Generated requests: every response conforms to the OpenAPI document."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import forge
from forge import Forge, Status
from tests.http.conftest import Headers, MakeServerApp, MakeToken, Serve
from tests.http.job_client import Export, add_jobs, dispatched
from tests.store.placing import Psql, placed


def no_fault_of_the_server(context: Any, response: Any, case: Any) -> None:
    """Allow 503s for a missing database or worker, but no other server error."""
    assert response.status_code != 500, response.text


CHECKS = [
    no_fault_of_the_server,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = settings(
    max_examples=25,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
async def test_all_responses_conform_to_the_document(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken, psql: "Psql[Any]"
) -> None:
    add_jobs(app)
    app.register(rename)
    address = await serve(make_server_app(app))
    headers = token("user", "staff", "manager")
    ids = [await placed(psql, status, worker=uuid4()) for status in Status]
    async with httpx.AsyncClient(base_url=address) as client:
        ids.append(await dispatched(client, headers, args={"a": 1}))
        document = (await client.get("/openapi.json", headers=headers)).json()

    tried, faults = await asyncio.to_thread(_try_all, document, address, headers, ids)

    assert faults == []
    assert len(tried) == sum(len(methods) for methods in document["paths"].values())
    assert min(tried.values()) > 0


@forge.mutation
async def rename(ctx: Any, input: Export) -> Export:
    """Return the input."""
    return input


def _try_all(
    document: Any, address: str, headers: Headers, ids: list[UUID]
) -> tuple[dict[str, int], list[str]]:
    """Send requests to every operation; return how many each was sent, and what was found."""
    schema = schemathesis.openapi.from_dict(document)
    tried: dict[str, int] = {}
    faults: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        # A job that is final ends its stream of events; another's would not end.
        known = ids[3:4] if operation.path.endswith("/events") else ids
        try:
            tried[operation.label] = _try(operation, address, headers, known)
        except (Exception, BaseExceptionGroup) as error:
            tried[operation.label] = 1
            faults.append(f"{operation.label}: {error!r} {getattr(error, 'exceptions', '')}")
    return tried, faults


def _try(operation: Any, address: str, headers: Headers, ids: list[UUID]) -> int:
    count = 0
    modes = [GenerationMode.POSITIVE]
    if operation.body or len(list(operation.iter_parameters())) > 0:
        modes.append(GenerationMode.NEGATIVE)
    cases = some.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])

    @EXAMPLES
    @given(case=cases, job_id=some.sampled_from(ids), is_known=some.booleans())
    def attempt(case: Any, job_id: UUID, is_known: bool) -> None:
        nonlocal count
        count += 1
        if is_known and "job_id" in (case.path_parameters or {}):
            case.path_parameters["job_id"] = str(job_id)
        case.call_and_validate(base_url=address, headers=headers, checks=CHECKS, timeout=30)

    attempt()
    return count
