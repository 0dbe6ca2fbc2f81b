"""Many processes write to one history."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.faults.kit.history import History, Kind
from tests.faults.kit.process import spawn


def test_many_processes_write_one_history(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    script = (
        "import sys; from tests.faults.kit.history import History\n"
        "for n in range(200): History(sys.argv[1]).started(n, 1, sys.argv[2])"
    )

    children = [spawn([sys.executable, "-c", script, history.path, name]) for name in "abc"]
    for n in range(200):
        history.dispatched(n)
    for child in children:
        with child:
            assert child.wait(30) == 0, child.output()

    events = history.events()
    assert len(events) == 800
    assert len({event.pid for event in events}) == 4
    assert sum(event.kind is Kind.DISPATCHED for event in events) == 200
    assert events == sorted(events, key=lambda event: event.monotonic)


def test_a_line_whose_end_is_not_written_yet_is_left_out(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.dispatched("first")
    history.dispatched("second")
    whole = history.path.read_text()

    history.path.write_text(whole[:-20])
    seen = [event.job for event in history.events()]
    history.path.write_text(whole)

    assert seen == ["first"]
    assert [event.job for event in history.events()] == ["first", "second"]
