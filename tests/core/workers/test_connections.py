"""Whether a connection died in silence, by what both sides say of it."""

import pytest

from forge.store.connection.monitor import BackendSession, is_lost


@pytest.mark.parametrize(
    ("waits", "seen", "lost"),
    [
        (None, None, True),
        (5.0, None, True),
        # Another session of the same number, on the server that took over.
        (None, BackendSession(1, age=3.0, idle_for=None), True),
        # It works on the statement, or does not say what it does.
        (600.0, BackendSession(1, age=101.0, idle_for=None), False),
        (600.0, BackendSession(1, age=None, idle_for=None), False),
        # It has answered, or was never asked.
        (5.0, BackendSession(1, age=101.0, idle_for=4.0), True),
        # The answer may still be on its way, or the question.
        (5.0, BackendSession(1, age=101.0, idle_for=0.5), False),
        (0.5, BackendSession(1, age=101.0, idle_for=60.0), False),
        # Nothing is awaited: its user holds it.
        (None, BackendSession(1, age=101.0, idle_for=60.0), False),
    ],
)
def test_a_connection_is_judged_by_both_sides(
    waits: float | None, seen: BackendSession | None, lost: bool
) -> None:
    assert is_lost(100.0, waits, seen) is lost
