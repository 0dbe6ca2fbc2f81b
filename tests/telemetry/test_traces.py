"""Traces: a dispatch and its attempts are in one trace, across processes."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace as opentelemetry
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from forge import ActionContext, Forge, JobContext, MutationContext
from forge.core.trace_context import TraceContext, read_traceparent
from forge.telemetry.traces import set_source, trace, traceparent_for
from tests.apps import Work
from tests.http.conftest import MakeToken

SENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OWN = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"
exporter = InMemorySpanExporter()


@pytest.fixture(autouse=True)
def _spans() -> Iterator[None]:
    if not isinstance(opentelemetry.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        opentelemetry.set_tracer_provider(provider)
    exporter.clear()
    yield
    set_source(None)


async def test_an_attempt_is_a_child_of_the_span_that_dispatched_it(app: Forge, work: Work) -> None:
    trace(app)

    @app.job
    async def greet(ctx: JobContext) -> str | None:
        return ctx.traceparent

    await work(app)
    with opentelemetry.get_tracer("test").start_as_current_span("request"):
        handle = await app.dispatch(greet)
    carried = await handle.result(30)

    spans = named(exporter)
    request, dispatch, attempt = (spans[n] for n in ("request", "dispatch greet", "process greet"))
    assert parent_of(dispatch) == request.context.span_id
    assert parent_of(attempt) == dispatch.context.span_id
    assert attempt.context.trace_id == request.context.trace_id
    assert read_traceparent(carried).span_id == f"{dispatch.context.span_id:016x}"  # type: ignore[union-attr]
    assert attempt.attributes["messaging.message.id"] == str(handle.id)  # type: ignore[index]


async def test_with_links_an_attempt_starts_its_own_trace(app: Forge, work: Work) -> None:
    trace(app, links=True)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    await work(app)
    await (await app.dispatch(greet)).result(30)

    spans = named(exporter)
    attempt, dispatch = spans["process greet"], spans["dispatch greet"]
    assert attempt.context.trace_id != dispatch.context.trace_id
    assert parent_of(attempt) is None
    assert [link.context.span_id for link in attempt.links] == [dispatch.context.span_id]


@pytest.mark.parametrize("links", [True, False])
async def test_an_attempt_is_not_part_of_the_span_that_its_worker_was_started_in(
    app: Forge, work: Work, psql: Any, links: bool
) -> None:
    trace(app, links=links)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    with opentelemetry.get_tracer("test").start_as_current_span("startup") as startup:
        await work(app)
    handle = await app.dispatch(greet)
    await handle.result(30)
    # Dispatched in SQL, a job carries no trace.
    untraced = await psql.fetchval("select forge_dispatch('greet', '{}')")
    await app.handle(untraced).result(30)

    attempts = [span for span in exporter.get_finished_spans() if span.name == "process greet"]
    dispatch = named(exporter)["dispatch greet"]
    assert startup.get_span_context().trace_id not in {one.context.trace_id for one in attempts}
    assert len({one.context.trace_id for one in attempts}) == 2
    assert [parent_of(one) for one in attempts] == [
        None if links else dispatch.context.span_id,
        None,
    ]
    assert [len(one.links) for one in attempts] == [int(links), 0]


async def test_an_attempt_that_fails_is_an_error_in_its_trace(app: Forge, work: Work) -> None:
    trace(app)

    @app.job(max_attempts=1, dead_letter=False)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("no")

    await work(app)
    handle = await app.dispatch(fail)
    async for _ in handle.updates():
        pass

    attempt = named(exporter)["process fail"]
    assert attempt.status.status_code is StatusCode.ERROR
    assert [event.name for event in attempt.events] == ["exception"]


async def test_an_error_in_a_trace_is_redacted(app: Forge, work: Work) -> None:
    trace(app)

    @app.job(max_attempts=1, dead_letter=False)
    async def log_in(ctx: JobContext, input: dict[str, Any]) -> None:
        raise ValueError(f"{input['password']} is wrong; sent api_key=k-998877 with it")

    await work(app)
    handle = await app.dispatch(log_in, {"password": "swordfish-and-more"})
    async for _ in handle.updates():
        pass

    attempt = named(exporter)["process log_in"]
    ((_, recorded),) = [(event.name, dict(event.attributes or {})) for event in attempt.events]
    assert recorded["exception.type"] == "ValueError"
    assert recorded["exception.message"] == "[redacted] is wrong; sent api_key=[redacted] with it"
    assert "in log_in" in str(recorded["exception.stacktrace"])
    assert "swordfish" not in attempt.to_json()
    assert "k-998877" not in attempt.to_json()


async def test_a_traceparent_passes_through_a_process_without_tracing(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    @app.job
    async def greet(ctx: JobContext, input: dict[str, Any]) -> str | None:
        return ctx.traceparent

    await work(app)
    headers = token("user") | {"traceparent": SENT}
    plain = await http.post("/_api/jobs/greet/dispatch", json={}, headers=headers)
    keyed = await http.post(
        "/_api/jobs/greet/dispatch", json={"idempotency_key": "k"}, headers=headers
    )
    broken = await http.post(
        "/_api/jobs/greet/dispatch", json={}, headers=token("user") | {"traceparent": "00-zz"}
    )

    outputs = [
        await app.handle(UUID(answer.json()["job_id"])).result(30)
        for answer in (plain, keyed, broken)
    ]
    assert outputs == [SENT, SENT, None]


async def test_a_trace_passes_through_mutations_and_actions(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.job
    async def greet(ctx: JobContext) -> None: ...

    @app.mutation
    async def mutate(ctx: MutationContext) -> None:
        await ctx.dispatch_job(greet)

    @app.action
    async def act(ctx: ActionContext) -> None:
        await ctx.dispatch_job("greet")
        await ctx.dispatch_job("greet", traceparent=OWN)

    headers = token("user") | {"traceparent": SENT}
    for path in ("mutations/mutate", "actions/act"):
        answer = await http.post(f"/_api/{path}", json={}, headers=headers)
        assert answer.status_code == 200, answer.text

    carried = await psql.fetch("select traceparent from forge_jobs order by created_at, id")
    assert [row["traceparent"] for row in carried] == [SENT, SENT, OWN]


@pytest.mark.parametrize("path", ["jobs/greet/dispatch", "mutations/mutate"])
async def test_the_dispatch_of_a_request_is_of_its_callers_trace(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, path: str
) -> None:
    trace(app)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    @app.mutation
    async def mutate(ctx: MutationContext) -> None:
        await ctx.dispatch_job(greet)

    await http.post(f"/_api/{path}", json={}, headers=token("user") | {"traceparent": SENT})

    dispatch = named(exporter)["dispatch greet"]
    carried = await psql.fetchval("select traceparent from forge_jobs")
    assert f"{dispatch.context.trace_id:032x}" in SENT
    assert read_traceparent(carried).span_id == f"{dispatch.context.span_id:016x}"  # type: ignore[union-attr]


async def test_without_a_current_span_the_sent_one_is_the_parent_of_the_dispatch(
    app: Forge,
) -> None:
    trace(app)

    carried = read_traceparent(traceparent_for("greet", SENT))

    dispatch = named(exporter)["dispatch greet"]
    assert f"{parent_of(dispatch):016x}" == "00f067aa0ba902b7"
    assert carried == TraceContext(
        "4bf92f3577b34da6a3ce929d0e0e4736", f"{dispatch.context.span_id:016x}"
    )


async def test_many_jobs_of_one_dispatch_share_its_trace(app: Forge, work: Work, psql: Any) -> None:
    trace(app)

    @app.job
    async def greet(ctx: JobContext, input: int) -> None: ...

    await app.dispatch_many(greet, range(3))

    carried = await psql.fetch("select distinct traceparent from forge_jobs")
    assert len(carried) == 1
    dispatch = named(exporter)["dispatch greet"]
    assert f"{dispatch.context.trace_id:032x}" in carried[0]["traceparent"]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
    ],
)
def test_an_invalid_trace_context_is_ignored(text: str | None) -> None:
    assert read_traceparent(text) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert read_traceparent("01" + SENT[2:] + "-more") == read_traceparent(SENT)


@given(
    st.from_regex(r"[1-9a-f]{32}", fullmatch=True), st.from_regex(r"[1-9a-f]{16}", fullmatch=True)
)
def test_a_trace_context_is_read_as_it_was_written(trace_id: str, span_id: str) -> None:
    context = TraceContext(trace_id, span_id)

    assert read_traceparent(str(context)) == context


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id
