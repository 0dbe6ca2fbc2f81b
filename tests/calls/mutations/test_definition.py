"""Definitions of mutations, and their arguments."""

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import Field

import forge
from forge import Forge, InvalidPayload, InvalidValue, MutationContext, NotRegistered


@dataclass
class Point:
    x: int


class Film(TypedDict):
    title: str


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"email": "ada"}, ("ada", 1, None)),
        ({"email": "ada", "copies": "2", "film": {"title": "M"}}, ("ada", 2, {"title": "M"})),
    ],
)
async def test_plain_parameters_are_passed_by_name(
    app: Forge, given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    @app.mutation
    async def post(
        ctx: MutationContext,
        email: Annotated[str, Field(min_length=2)],
        copies: int = 1,
        *,
        film: Film | None = None,
    ) -> tuple[Any, ...]:
        return email, copies, film

    assert await post.call(given) == expected


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "$.email"),
        ({"email": 5}, "$.email"),
        ({"email": "a"}, "$.email"),
        ({"email": "ada", "copies": "many"}, "$.copies"),
        ({"email": "ada", "nonsense": 1}, "$.nonsense"),
        (["ada"], "$"),
    ],
)
async def test_invalid_arguments_are_rejected_with_their_path(
    app: Forge, given: Any, path: str
) -> None:
    @app.mutation
    async def post(
        ctx: MutationContext, email: Annotated[str, Field(min_length=2)], copies: int = 1
    ) -> None:
        raise AssertionError("it must not run")

    with pytest.raises(InvalidPayload, match="the input of post does not fit") as refused:
        await post.call(given)

    assert [fault.path for fault in refused.value.faults] == [path]


async def test_a_single_object_parameter_receives_the_whole_input(app: Forge) -> None:
    @app.mutation
    async def move(ctx: MutationContext, point: Point) -> Point:
        return Point(point.x + 1)

    @app.mutation
    async def show(ctx: MutationContext, film: Film) -> str:
        return film["title"]

    @app.mutation
    async def echo(ctx: MutationContext, anything: dict[str, Any]) -> Any:
        return anything

    assert await move.call(Point(1)) == Point(2)
    assert await move.call({"x": 2}) == Point(3)
    assert await show.call({"title": "M"}) == "M"
    assert await echo.call({"a": [1]}) == {"a": [1]}
    with pytest.raises(InvalidPayload, match="NUL"):
        await echo.call({"a": "\0"})


async def test_a_definition_is_still_a_function(app: Forge, psql: Any) -> None:
    @forge.mutation
    async def register_user(ctx: Any, email: str) -> str:
        return f"{ctx}: {email}"

    assert await register_user("a context of the test", "ada") == "a context of the test: ada"
    with pytest.raises(NotRegistered, match=r"app\.register\(register_user\)"):
        await register_user.call({"email": "ada"})

    app.register(register_user)

    assert (await app.call("register_user", {"email": "ada"})).endswith("ada")


async def test_an_unknown_or_duplicate_name_is_rejected(app: Forge) -> None:
    @app.mutation
    async def same(ctx: MutationContext) -> None: ...

    with pytest.raises(NotRegistered, match="no mutation or action named 'other'"):
        await app.call("other")
    with pytest.raises(InvalidValue, match="there is a mutation named 'same' already"):

        @app.action(name="same")
        async def another(ctx: Any) -> None: ...


def test_an_invalid_mutation_is_rejected_at_decoration() -> None:
    def plain(ctx: Any) -> None: ...

    async def without() -> None: ...

    async def many(ctx: Any, *rest: str) -> None: ...

    async def good(ctx: Any) -> None: ...

    refusals: list[tuple[Any, dict[str, Any], str]] = [
        (plain, {}, "`async def`.*to_thread"),
        (without, {}, "the first parameter is the context"),
        (many, {}, "cannot be given by name"),
        (good, {"name": "a/b"}, "part of its address"),
        (good, {"role": "king"}, "role is one of user, staff, manager"),
        (good, {"timeout": "soon"}, "good: timeout"),
        (good, {"isolation": "perfect"}, "isolation is one of read_committed"),
        (good, {"retries": -1}, "retries is a whole number"),
        (good, {"priority": 1}, "no attribute 'priority'; it takes name, role, timeout"),
    ]
    for handler, attributes, message in refusals:
        with pytest.raises(InvalidValue, match=message):
            forge.mutation(**attributes)(handler)
