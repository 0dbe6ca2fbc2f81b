"""The page on live updates matches the code."""

import re

from forge.http.live import access, event_stream, follower_socket, lists, messages, view
from forge.jobs import list_watcher
from tests.surface.pages import CHECKOUT
from tests.surface.test_reference import names, table

PAGE = "live.md"


def test_every_field_of_a_live_update_is_documented() -> None:
    documented = [name for row in table(PAGE, "field") for name in names(row[0])]

    assert sorted(documented) == sorted([*view.COLUMNS, "state", "output", "undecodable"])


def test_every_message_is_documented() -> None:
    documented = {
        found[1] for row in table(PAGE, "message") if (found := re.search(r'"(\w+)"', row[0][9:]))
    }
    client_messages = {
        messages.AuthMessage,
        messages.SubscribeMessage,
        messages.UnsubscribeMessage,
        messages.SubscribeListMessage,
        messages.UnsubscribeListMessage,
    }
    client_message_names = {
        kind.model_fields["type"].annotation.__args__[0] for kind in client_messages
    }  # type: ignore[union-attr]

    assert documented == client_message_names | {"job", "changed", "error"}


def test_the_documented_limits_match_the_code() -> None:
    assert [float(row[1]) for row in table(PAGE, "limit")] == [
        follower_socket.MAX_SUBSCRIPTIONS,
        lists.MAX_LISTS,
        lists.MAX_DIFFERENT_LISTS,
        list_watcher.MAX_WATCHED,
        messages.MAX_MESSAGE_SIZE,
        follower_socket.MESSAGES_PER_SECOND,
        follower_socket.MAX_BURST,
        follower_socket.AUTH_TIMEOUT,
        access.SEND_TIMEOUT,
    ]
    page = (CHECKOUT / "docs" / "reference" / PAGE).read_text()
    assert f"every {event_stream.KEEP_ALIVE_INTERVAL:g} seconds" in page


def test_every_close_code_of_a_socket_is_documented() -> None:
    endings = {
        value.code
        for value in vars(follower_socket).values()
        if isinstance(value, follower_socket.CloseReason)
    }

    documented = {int(name) for row in table(PAGE, "closed with") for name in names(row[0])}

    assert documented == endings | {1011}  # sent by the web server itself
