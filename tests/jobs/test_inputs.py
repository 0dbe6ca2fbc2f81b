"""Inputs and outputs: typed, validated at dispatch, and returned as JSON."""

import sys
import threading
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from forge import Forge, InvalidPayload, InvalidValue, JobContext, JobFailed
from tests.apps import Work
from tests.worker import handlers


class Address(BaseModel):
    street: str
    number: int = 1


class Size(BaseModel):
    width: int = Field(alias="w-i-d-t-h")


@dataclass
class Point:
    x: int
    y: int


class Film(TypedDict):
    title: str
    year: int


class Programme(TypedDict):
    films: list[Film]
    note: NotRequired[str]


class Tree(typing_extensions.TypedDict):
    children: list["Tree"]


class Knot(TypedDict):
    knots: list["Knot"]


async def test_a_pydantic_model_arrives_as_that_model(app: Forge, work: Work) -> None:
    @app.job
    async def post(ctx: JobContext, input: Address) -> Address:
        assert isinstance(input, Address)
        return Address(street=input.street.upper(), number=input.number + 1)

    await work(app)

    given = await post.dispatch(Address(street="elm"))
    as_dict = await post.dispatch({"street": "oak", "number": 4})

    assert await given.result(10) == Address(street="ELM", number=2)
    assert await as_dict.result(10) == Address(street="OAK", number=5)


async def test_a_field_with_an_alias_arrives(app: Forge, work: Work) -> None:
    @app.job
    async def measure(ctx: JobContext, input: Size) -> int:
        return input.width

    await work(app)

    assert await (await measure.dispatch({"w-i-d-t-h": 5})).result(10) == 5


async def test_a_constraint_in_the_annotation_is_enforced(app: Forge) -> None:
    @app.job
    async def pick(ctx: JobContext, input: Annotated[list[int], Field(max_length=2)]) -> None: ...

    await pick.dispatch([1, 2])
    with pytest.raises(InvalidPayload, match="at most 2 items"):
        await pick.dispatch([1, 2, 3])


async def test_a_dataclass_arrives_as_that_dataclass(app: Forge, work: Work) -> None:
    @app.job
    async def mirror(ctx: JobContext, input: Point) -> Point:
        assert isinstance(input, Point)
        return Point(input.y, input.x)

    await work(app)

    assert await (await mirror.dispatch(Point(1, 2))).result(10) == Point(2, 1)


async def test_a_typed_dict_is_checked_and_arrives_as_a_dict(app: Forge, work: Work) -> None:
    @app.job
    async def show(ctx: JobContext, input: Film) -> str:
        return f"{input['title']} ({input['year']})"

    await work(app)

    assert await (await show.dispatch(Film(title="M", year=1931))).result(10) == "M (1931)"
    with pytest.raises(InvalidPayload, match=r"\$\.year"):
        await show.dispatch({"title": "M"})


async def test_nested_typed_dicts_are_checked(app: Forge, work: Work) -> None:
    @app.job
    async def show(ctx: JobContext, input: Programme) -> int:
        return len(input["films"])

    await work(app)

    assert await (await show.dispatch({"films": [{"title": "M", "year": 1931}]})).result(10) == 1
    with pytest.raises(InvalidPayload, match=r"\$\.films\[0\]\.year"):
        await show.dispatch({"films": [{"title": "M"}], "note": "tonight"})


def test_an_unsupported_input_type_is_rejected_with_the_supported_ones(
    app: Forge,
) -> None:
    with pytest.raises(InvalidValue, match="use a pydantic model, a dataclass, a TypedDict"):

        @app.job
        async def odd(ctx: JobContext, input: threading.Event) -> None: ...


def test_a_typed_dict_that_contains_itself_is_taken_from_typing_extensions(app: Forge) -> None:
    @app.job
    async def walk(ctx: JobContext, input: Tree) -> None: ...

    assert '"$ref":"#/$defs/Tree"' in (walk.job_type.input_schema or "")
    if sys.version_info < (3, 12):
        with pytest.raises(InvalidValue, match="import it from there"):

            @app.job
            async def wander(ctx: JobContext, input: Knot) -> None: ...


@pytest.mark.parametrize("given", [{}, {"a": [1, None, "ü"]}, {"deep": {"er": {"x": 1.5}}}])
async def test_a_plain_dict_arrives_unchanged(app: Forge, work: Work, given: Any) -> None:
    @app.job
    async def echo(ctx: JobContext, input: dict) -> dict:
        return input

    await work(app)

    assert await (await echo.dispatch(given)).result(10) == given


async def test_a_handler_without_an_input_accepts_none(app: Forge, work: Work) -> None:
    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await work(app)
    handle = await ping.dispatch()

    assert await handle.result(10) == "pong"
    assert (await handle.get()).input == {}


@pytest.mark.parametrize("output", [None, 0, "", [], {"a": {"b": [1]}}, "ünï", 2**53, [None]])
async def test_the_return_value_of_a_handler_is_the_output_of_its_job(
    app: Forge, work: Work, output: Any
) -> None:
    @app.job
    async def give(ctx: JobContext) -> Any:
        return output

    await work(app)
    handle = await give.dispatch()

    assert await handle.result(10) == output
    job = await handle.get()
    assert (job.status, job.output, job.progress_percent) == ("completed", output, 100)
    assert job.completed_at is not None


@pytest.mark.parametrize("isolation", ["none", "process"])
async def test_an_output_that_json_cannot_represent_fails_the_attempt_with_its_path(
    app: Forge, work: Work, isolation: str
) -> None:
    if isolation == "none":
        definition: Any = app.job(name="unstorable", max_attempts=1)(handlers.unstorable.handler)
    else:
        definition = handlers.unstorable
        app.register(definition)
    await work(app)
    handle = await definition.dispatch()

    if isolation == "none":
        with pytest.raises(JobFailed, match=r"the output: \$\.oops is NaN"):
            await handle.result(10)
    else:
        async for record in handle.updates():
            if record.last_error:
                break
        assert "$.oops" in (record.last_error or "")


async def test_an_invalid_input_is_rejected_and_nothing_is_written(app: Forge, psql: Any) -> None:
    @app.job
    async def post(ctx: JobContext, input: Address) -> None: ...

    with pytest.raises(InvalidPayload, match=r"\$\.street.*\$\.number|\$\.number.*\$\.street"):
        await post.dispatch({"number": "many"})

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_a_stored_input_that_is_no_longer_valid_fails_the_attempt_only(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1)
    async def post(ctx: JobContext, input: Address) -> str:
        return input.street

    bad = await psql.fetchval(
        "insert into forge_jobs (job_type, input, max_attempts) "
        """values ('post', '{"number": 3}', 1) returning id"""
    )
    await work(app)

    with pytest.raises(JobFailed, match="street"):
        await app.handle(bad).result(10)
    assert await (await post.dispatch(Address(street="elm"))).result(10) == "elm"
