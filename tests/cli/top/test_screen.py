"""What `forge top` draws, for terminals of several sizes."""

from io import StringIO

import pytest
from rich.console import Console

from forge.cli.top.screen import draw
from forge.cli.top.snapshot import Snapshot
from forge.cli.top.view import View, pressed
from forge.core.finding import problem, warning
from tests.cli.top.snapshots import line, snapshot

FOUND = (
    problem("unserved", "no worker has the type 'render' " + "and so on " * 30, "start one"),
    *(warning(f"w{n}", "something", "do it") for n in range(8)),
)
BUSY = snapshot(
    line("export_users", per_minute=120, completed=1800, failed=4, failed_percent=0.2, run=2100),
    line("send_mail", per_minute=900, completed=9000, failed_percent=0.0, wait=80, run=12),
    line("render", waiting=1000, is_exact=False, oldest_seconds=250),
    line("charge", per_minute=2, completed=20, failed=10, failed_percent=33.0, run=900_000),
    findings=FOUND,
)


def shown(found: Snapshot, view: View, width: int = 80, height: int = 24) -> list[str]:
    """Return the lines of a screen without colours."""
    console = Console(file=StringIO(), width=width, height=height, no_color=True)
    console.print(draw(found, view, width, height))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 12), (140, 40), (200, 60)])
@pytest.mark.parametrize("keys", ["", "?", "/x"])
def test_nothing_is_wider_or_higher_than_the_terminal(width: int, height: int, keys: str) -> None:
    many = snapshot(*(line(f"type_{n}" * 9, per_minute=n) for n in range(90)), findings=FOUND)
    view = View()
    for key in keys:
        view = pressed(view, key)

    lines = shown(many, view, width, height)

    assert max(map(len, lines)) <= width
    assert len(lines) <= height


@pytest.mark.parametrize("width", [40, 60, 80, 110, 140])
def test_names_and_the_sorted_column_stay_in_a_narrow_terminal(width: int) -> None:
    drawn = "\n".join(shown(BUSY, View(sort="run"), width, 12))

    assert all(name in drawn for name in ("export_users", "send_mail", "run p95▾", "15 m 0 s"))
    assert ("retried" in drawn) is (width >= 110)


def test_the_answer_comes_first_and_says_in_words_what_colours_mean() -> None:
    lines = shown(BUSY, View(), 140, 40)

    assert lines[1] == "1 problem, 8 warnings"
    assert shown(snapshot(), View())[1] == "no problems found"
    text = "\n".join(lines)
    assert "waiting 1,204+, the oldest for 4 m 10 s (export_users)" in text
    assert "slots 37 of 80   workers 4 alive, 1 drained" in text
    assert "dead letters 12   schedules failing 1   pauses 0" in text
    assert "problem unserved: no worker has the type 'render'" in text
    assert "… 4 more; `forge doctor` says what to do" in text


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("r", ["send_mail", "export_users", "charge", "render"]),
        ("n", ["render", "export_users", "send_mail", "charge"]),
        ("w", ["send_mail", "export_users", "render", "charge"]),
        ("u", ["charge", "export_users", "send_mail", "render"]),
        ("f", ["charge", "export_users", "send_mail", "render"]),
        ("t", ["charge", "export_users", "render", "send_mail"]),
    ],
)
def test_a_key_sorts_the_types(key: str, order: list[str]) -> None:
    lines = pressed(View(), key).lines(BUSY.types)

    assert [found.job_type for found in lines] == order


def test_keys_filter_hold_and_change_the_window() -> None:
    view = View()
    for key in "/mailq\x7f\r":
        view = pressed(view, key)

    assert [found.job_type for found in view.lines(BUSY.types)] == ["send_mail"]
    assert not view.is_over
    assert pressed(view, "\x1b").filter == ""
    assert pressed(view, " ").is_held
    assert [pressed(view, key).last for key in "+-"] == ["1h", "5m"]
    assert pressed(View(last="24h"), "+").last == "24h"
    assert pressed(view, "q").is_over
    assert pressed(view, "x") == view


def test_without_a_match_the_screen_says_how_to_see_all() -> None:
    assert "no type contains 'zzz'; Esc clears the filter" in shown(BUSY, View(filter="zzz"))
    assert any("no jobs in the last 15m" in found for found in shown(snapshot(), View()))


def test_an_error_is_shown_above_the_last_figures() -> None:
    console = Console(file=StringIO(), width=80, height=24, no_color=True)

    console.print(draw(BUSY, View(), 80, 24, "the database is away\x1b[2J"))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "cannot read: the database is away\\x1b[2J" in text
    assert "send_mail" in text
