"""Definitions: errors are raised at decoration, with the allowed values."""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from pydantic import BaseModel

import forge
from forge import Config, Forge, InvalidValue, JobContext, Retry


async def good(ctx: Any, input: dict[str, Any]) -> None: ...


ATTRIBUTES: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "must be text that is not empty"),
    ({"name": 5}, "must be text that is not empty"),
    ({"name": "x" * 256}, "at most 255 characters"),
    ({"timeout": 30}, 'such as "30s"'),
    ({"timeout": "1.5h"}, 'such as "30s"'),
    ({"timeout": "0s"}, "more than zero"),
    ({"timeout": None}, 'such as "30s"'),
    ({"priority": "urgent"}, r'one of "critical" \(100\)'),
    ({"priority": 60}, r'one of "critical" \(100\)'),
    ({"priority": True}, r'one of "critical" \(100\)'),
    ({"max_attempts": 0}, "a whole number from 1 to 1,000,000"),
    ({"max_attempts": "3"}, "a whole number from 1 to 1,000,000"),
    ({"max_attempts": 1_000_001}, "a whole number from 1 to 1,000,000"),
    ({"retry": 5}, r"good: retry must be a Retry, such as Retry\(max_attempts=5\), not 5"),
    ({"retry": "exponential"}, "good: retry must be a Retry"),
    ({"worker_capability": ""}, "worker_capability must be text"),
    ({"worker_capability": ["gpu"]}, "worker_capability must be text"),
    ({"queue": None}, "queue must be text"),
    ({"idempotent": "payment_id"}, r'a path such as "input\.payment_id"'),
    ({"idempotent": "input."}, r'a path such as "input\.payment_id"'),
    ({"idempotent": "input..a"}, r'a path such as "input\.payment_id"'),
    ({"idempotent": 5}, r'a path such as "input\.payment_id"'),
    ({"category": "mail"}, "category must be one of ingestion, sync"),
    ({"requires": "user_id"}, r"good: requires must be a list; write \['user_id'\]"),
    ({"requires": 5}, "good: requires must be a list"),
    ({"requires": [5]}, "requires must be text"),
    ({"allow_sensitive": "token"}, r"allow_sensitive must be a list; write \['token'\]"),
    ({"allow_sensitive": None}, "allow_sensitive must be a list"),
    ({"dead_letter": "no"}, "good: dead_letter must be True or False, not 'no'"),
    ({"dead_letter": 0}, "good: dead_letter must be True or False"),
    ({"isolation": "thread"}, 'isolation must be "none" or "process"'),
]


@pytest.mark.parametrize(("attributes", "message"), ATTRIBUTES, ids=lambda value: repr(value)[:50])
def test_an_invalid_attribute_is_rejected(attributes: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        forge.job(**attributes)(good)


@pytest.mark.parametrize(
    "attributes",
    [{"max_attempts": "3"}, {"backoff": "quick"}, {"max_backoff": 5}, {"max_backoff": "0s"}],
)
def test_an_invalid_retry_is_rejected(attributes: Any) -> None:
    with pytest.raises(InvalidValue, match=next(iter(attributes))):
        Retry(**attributes)


async def with_a_keyword(ctx: Any, *, input: dict[str, Any]) -> None: ...


async def with_any_number(ctx: Any, *inputs: Any) -> None: ...


async def with_three(ctx: Any, input: dict[str, Any], more: int = 0) -> None: ...


async def with_none() -> None: ...


@pytest.mark.parametrize("handler", [with_a_keyword, with_any_number, with_three, with_none])
def test_a_handler_with_wrong_parameters_is_rejected(handler: Callable[..., Any]) -> None:
    with pytest.raises(InvalidValue, match=r"a job takes \(ctx, input\) or \(ctx\), not \("):
        forge.job(handler)


class Mail(BaseModel):
    to: str


class HasProgress(Protocol):
    def progress(self, percent: float) -> None: ...


async def only_the_input(mail: Mail) -> None: ...


async def plain_arguments(a: int, b: int) -> None: ...


async def untyped_arguments(first, second) -> None: ...  # type: ignore[no-untyped-def]


async def turned_round(input: dict[str, Any], ctx: JobContext) -> None: ...


async def a_dict(ctx: dict[str, Any]) -> None: ...


async def no_such_name(mail: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821


WITHOUT_A_CONTEXT = [
    only_the_input,
    plain_arguments,
    untyped_arguments,
    turned_round,
    a_dict,
    no_such_name,
]


@pytest.mark.parametrize("handler", WITHOUT_A_CONTEXT)
def test_a_first_parameter_that_is_not_the_context_is_rejected(handler: Callable[..., Any]) -> None:
    app = Forge(Config())
    decorators: list[tuple[Any, str]] = [
        (forge.job, "job"),
        (forge.mutation, "mutation"),
        (forge.action, "action"),
        (app.schedule("recurring", every="1m"), "job"),
    ]

    for decorate, kind in decorators:
        with pytest.raises(InvalidValue, match=f"the first parameter of a {kind} is its context"):
            decorate(handler)


def test_the_error_shows_the_correct_signature() -> None:
    with pytest.raises(InvalidValue, match=r"not 'mail: .*Mail'; write only_the_input\(ctx: Job"):
        forge.job(only_the_input)


async def untyped(ctx, input) -> None: ...  # type: ignore[no-untyped-def]


async def unused(_, input) -> None: ...  # type: ignore[no-untyped-def]


async def for_checkers(ctx: "OnlyForCheckers") -> None: ...  # type: ignore[name-defined] # noqa: F821


async def by_protocol(handle: HasProgress) -> None: ...


async def optional(ctx: JobContext | None) -> None: ...


@pytest.mark.parametrize("handler", [good, untyped, unused, for_checkers, by_protocol, optional])
def test_a_first_parameter_that_may_be_the_context_is_accepted(handler: Callable[..., Any]) -> None:
    assert forge.job(handler).name == handler.__name__


def yielding(ctx: Any) -> Any:
    yield 1


async def yielding_later(ctx: Any) -> Any:
    yield 1


@pytest.mark.parametrize("handler", [yielding, yielding_later])
def test_a_generator_is_rejected(handler: Callable[..., Any]) -> None:
    with pytest.raises(InvalidValue, match="cannot yield it; return a list"):
        forge.job(handler)


class Callback:
    async def __call__(self, ctx: Any) -> None: ...


@pytest.mark.parametrize("thing", [5, dict, functools.partial(good), Callback()])
def test_a_value_that_is_not_a_function_is_rejected(thing: Any) -> None:
    with pytest.raises(InvalidValue, match=r"@forge\.job decorates a function, not"):
        forge.job(thing)


def test_a_name_in_place_of_the_function_gets_an_error_with_the_correct_form() -> None:
    for decorate in (forge.job, Forge(Config()).job):
        with pytest.raises(InvalidValue, match=r"write @forge\.job\(name='export'\)"):
            decorate("export")  # type: ignore[call-overload]


def test_a_function_that_is_not_decorated_cannot_be_registered() -> None:
    app = Forge(Config())

    with pytest.raises(InvalidValue, match="decorate it first"):
        app.register(good)  # type: ignore[arg-type]
    assert app.definitions == {}


@pytest.mark.parametrize("config", ["postgresql://localhost/shop", {"worker": {}}])
def test_an_app_with_wrong_settings_gets_an_error_that_lists_them(config: Any) -> None:
    with pytest.raises(InvalidValue, match=r"write Forge\(database_url=…\)"):
        Forge(config)


@pytest.mark.parametrize("url", ["localhost:5432/shop", "mysql://localhost/shop", 5432])
def test_an_app_with_a_wrong_database_gets_an_error_with_the_correct_form(url: Any) -> None:
    with pytest.raises(InvalidValue, match="database_url must be a URL such as postgresql://user"):
        Forge(Config(), database_url=url)


async def indented(ctx: Any) -> None:
    """Say what it does.

        An example.

    The end.
    """


async def unstorable(ctx: Any) -> None:
    "A NUL \0 and a lone surrogate \ud800."


@pytest.mark.parametrize(
    ("handler", "description"),
    [
        (indented, "Say what it does.\n\n    An example.\n\nThe end."),
        (unstorable, "A NUL � and a lone surrogate ?."),
        (good, None),
    ],
)
def test_the_docstring_of_the_handler_describes_the_type(
    handler: Any, description: str | None
) -> None:
    assert forge.job(handler).job_type.description == description
