"""The page on live updates says what the code says."""

import re

from forge.http import live, live_conversation, live_messages, live_pace, live_stream, live_view
from tests.surface.pages import CHECKOUT
from tests.surface.test_reference import names, table

PAGE = "live.md"


def test_every_field_that_a_follower_is_shown_stands_there() -> None:
    told = [name for row in table(PAGE, "field") for name in names(row[0])]

    assert sorted(told) == sorted([*live_view.COLUMNS, "state", "output", "undecodable"])


def test_every_message_stands_there() -> None:
    told = {
        found[1] for row in table(PAGE, "message") if (found := re.search(r'"(\w+)"', row[0][9:]))
    }
    said = {live_messages.Auth, live_messages.Subscribe, live_messages.Unsubscribe}
    names_of_said = {kind.model_fields["type"].annotation.__args__[0] for kind in said}  # type: ignore[union-attr]

    assert told == names_of_said | {"job", "error"}


def test_the_limits_are_those_of_the_code() -> None:
    assert [float(row[1]) for row in table(PAGE, "limit")] == [
        live_conversation.MOST_SUBSCRIPTIONS,
        live_messages.LARGEST,
        live_pace.A_SECOND,
        live_pace.BURST,
        live_conversation.INTRODUCTION,
        live.STALL,
    ]
    page = (CHECKOUT / "docs" / "reference" / PAGE).read_text()
    assert f"every {live_stream.KEEP_ALIVE:g} seconds" in page


def test_the_ways_in_which_a_socket_is_closed_stand_there() -> None:
    endings = {
        value.code
        for value in vars(live_conversation).values()
        if isinstance(value, live_conversation.Ending)
    }

    told = {int(name) for row in table(PAGE, "closed with") for name in names(row[0])}

    assert told == endings | {1011}  # that one is the web server's own
