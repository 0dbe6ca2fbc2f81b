"""The place of an error is a function of the application, not of Forge or of a library."""

import json
from collections.abc import Callable

import pytest

from forge import InvalidValue
from forge.core.duration import parse_duration
from forge.definitions.error_classification import Classifier


def reads_a_duration() -> None:
    parse_duration("soon")


def reads_json() -> None:
    json.loads("{")


@pytest.mark.parametrize(
    ("handler", "error"), [(reads_a_duration, InvalidValue), (reads_json, ValueError)]
)
def test_the_place_of_an_error_is_the_last_function_of_the_application(
    handler: Callable[[], None], error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        handler()

    failure = Classifier().failure(raised.value)

    assert failure.place == f"{__name__}:{handler.__name__}"


def test_an_error_without_a_traceback_has_no_place() -> None:
    assert Classifier().failure(ValueError("never raised")).place == ""
