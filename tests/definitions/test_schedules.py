"""`@schedule` and `@cron`: accepted and rejected options."""

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
def test_a_schedule_has_the_attributes_of_its_decorator(decorator: Callable[..., Any]) -> None:
    made = decorator(
        missed="skip", jitter="5s", timeout="2m", priority="high", worker_capability="gpu",
        retry=Retry(backoff="fixed"), isolation="process",
    )(tick)  # fmt: skip

    assert (made.name, made.handler_kind) == ("tick", "process")
    assert (made.rule.missed, made.rule.jitter) == ("skip", timedelta(seconds=5))
    assert made.timeout_seconds == 120
    assert made.job_type.timeout == timedelta(minutes=2)
    assert made.job_type.retry == Retry(backoff="fixed")
    assert (made.job_type.priority, made.job_type.worker_capability) == (75, "gpu")


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"queue": "mail"}, "no attribute 'queue'; it takes"),
        ({"evry": "1h"}, "no attribute 'evry'"),
        ({"retry": Retry(max_attempts=3)}, "leave max_attempts out"),
        ({"missed": "never"}, "'once', 'skip', 'all'"),
        ({"jitter": "soon"}, "tick: jitter"),
    ],
)
def test_invalid_options_of_a_schedule_are_rejected_at_decoration(
    decorator: Callable[..., Any], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        decorator(**wrong)(tick)


def test_a_schedule_without_a_type_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="with the type of the schedules"):
        forge.schedule(tick)  # type: ignore[arg-type]


def test_two_handlers_of_one_type_are_rejected() -> None:
    app = Forge(Config())
    made = app.schedule("tick")(tick)
    app.register(made)

    with pytest.raises(InvalidValue, match="two handlers for schedules of type 'tick'"):
        app.cron("0 3 * * *", type="tick")(tick)
