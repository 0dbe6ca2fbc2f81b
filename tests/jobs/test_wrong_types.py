"""Values of the wrong type are rejected before anything is written, and not shown in errors."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from forge import Forge, InvalidPayload, InvalidValue, JobContext
from tests.apps import Work

SECRET = "hunter2"


def type_name(value: object) -> str:
    return type(value).__name__


@pytest.fixture
def ping(app: Forge) -> str:
    @app.job
    async def ping(ctx: JobContext, input: dict[str, Any]) -> int:
        return len(input)

    return "ping"


@pytest.mark.parametrize("input", [[SECRET], SECRET, 5, True, (SECRET,)], ids=repr)
async def test_a_handler_of_dicts_accepts_only_dicts(
    app: Forge, ping: str, psql: Any, input: Any
) -> None:
    for dispatch in (app.dispatch(ping, input), app.dispatch_many(ping, [{}, input])):
        with pytest.raises(InvalidPayload, match="the input of ping must be a dict") as refused:
            await dispatch
        assert SECRET not in str(refused.value)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_a_stored_input_that_is_not_a_dict_fails_with_the_same_message(
    app: Forge, ping: str, work: Work, psql: Any
) -> None:
    await work(app)
    job_id = await psql.fetchval("select forge_dispatch('ping', '[1, 2]')")

    async for job in app.handle(job_id).updates():
        if job.last_error is not None:
            break

    assert "the input of ping must be a dict" in job.last_error
    assert await (await app.dispatch(ping, {"n": 1})).result(10) == 1


async def endless() -> AsyncIterator[dict[str, Any]]:
    yield {}


@pytest.mark.parametrize("inputs", [{"a": SECRET}, SECRET, b"x", 5, None, endless()], ids=type_name)
async def test_dispatch_many_rejects_values_that_are_not_lists_of_inputs(
    app: Forge, psql: Any, inputs: Any
) -> None:
    @app.job
    async def takes_anything(ctx: JobContext, input: Any) -> None: ...

    with pytest.raises(InvalidValue, match=r"a list or a generator of inputs, .*\[input\]") as no:
        await app.dispatch_many("takes_anything", inputs)

    assert SECRET not in str(no.value)
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def undecorated(ctx: Any) -> None: ...


@pytest.mark.parametrize("job", [undecorated, 5, None], ids=type_name)
async def test_an_error_for_a_value_that_is_not_a_job_names_the_decorator(
    app: Forge, job: Any
) -> None:
    for dispatch in (app.dispatch(job), app.dispatch_many(job, [{}])):
        with pytest.raises(InvalidValue, match=r"a job or its name, .* with @app\.job"):
            await dispatch
    with pytest.raises(InvalidValue, match=r"or its name, .* with @app\.mutation or @app\.action"):
        await app.call(job)


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800b", "x" * 256], ids=ascii)
async def test_an_invalid_job_name_is_rejected_without_a_query(app: Forge, name: str) -> None:
    with pytest.raises(InvalidValue, match=r"^job "):
        await app.dispatch(name)


@pytest.mark.parametrize("option", ["auth", "meta"])
@pytest.mark.parametrize("value", [SECRET, [SECRET], 5], ids=repr)
async def test_auth_and_meta_of_a_dispatch_must_be_dicts(
    app: Forge, ping: str, option: str, value: Any
) -> None:
    with pytest.raises(InvalidValue, match=f"{option} must be a dict") as refused:
        await app.dispatch(ping, {}, **{option: value})

    assert SECRET not in str(refused.value)


async def test_auth_of_a_call_must_be_a_dict(app: Forge) -> None:
    @app.action
    async def greet(ctx: Any) -> None: ...

    with pytest.raises(InvalidValue, match="auth must be a dict"):
        await app.call("greet", auth="ada")  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", ["50ms", 0.05])
async def test_a_result_timeout_can_be_a_duration_string(
    app: Forge, ping: str, timeout: Any
) -> None:
    handle = await app.dispatch(ping, {})

    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        await handle.result(timeout)
    with pytest.raises(InvalidValue, match='such as "30s"'):
        await handle.result("soon")
