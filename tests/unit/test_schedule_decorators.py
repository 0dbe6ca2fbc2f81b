"""`@schedule` and `@cron`: what they take, and what they refuse at decoration."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import forge
from forge import Config, Forge, InvalidValue, Retry, ScheduleContext

DECORATORS: list[Callable[..., Any]] = [
    lambda **attributes: forge.schedule("tick", **attributes),
    lambda **attributes: forge.cron("0 3 * * *", **attributes),
    lambda **attributes: Forge(Config()).schedule("tick", **attributes),
    lambda **attributes: Forge(Config()).cron("0 3 * * *", **attributes),
]


async def tick(ctx: ScheduleContext) -> None: ...


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_schedule_is_run_as_it_says(decorator: Callable[..., Any]) -> None:
    made = decorator(
        missed="skip", jitter="5s", timeout="2m", priority="high", worker_capability="gpu",
        retry=Retry(backoff="fixed"), isolation="process",
    )(tick)  # fmt: skip

    assert (made.name, made.kind) == ("tick", "process")
    assert (made.rule.missed, made.rule.jitter) == ("skip", timedelta(seconds=5))
    assert (made.timeout, made.retry) == (timedelta(minutes=2), Retry(backoff="fixed"))
    assert (made.defaults.priority, made.defaults.worker_capability) == (75, "gpu")


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"queue": "mail"}, "no attribute 'queue'; it takes"),
        ({"evry": "1h"}, "no attribute 'evry'"),
        ({"retry": Retry(max_attempts=3)}, "leave max_attempts out"),
        ({"missed": "never"}, "'once', 'skip', 'all'"),
        ({"jitter": "soon"}, "tick: jitter"),
    ],
)
def test_what_a_schedule_does_not_take_is_refused_at_decoration(
    decorator: Callable[..., Any], wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        decorator(**wrong)(tick)


def test_a_schedule_without_a_type_is_refused() -> None:
    with pytest.raises(InvalidValue, match="with the type of the schedules"):
        forge.schedule(tick)  # type: ignore[arg-type]


def test_two_handlers_of_one_type_are_refused() -> None:
    app = Forge(Config())
    made = app.schedule("tick")(tick)
    app.register(made)

    with pytest.raises(InvalidValue, match="two handlers for schedules of type 'tick'"):
        app.cron("0 3 * * *", type="tick")(tick)
