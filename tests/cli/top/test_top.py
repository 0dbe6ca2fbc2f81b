"""`forge top` in a terminal, without colours, and printed once."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.command import FORGE, Project, project_fixture
from tests.cli.terminal import Terminal, terminal
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]
ENDED = ("completed", "dead_letter")
WRITTEN = "select coalesce(sum(completed + failed), 0) from forge_statistics where queue <> 'forge'"
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
ALTERNATE_SCREEN, MAIN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def busy(project: Project) -> Iterator[Project]:
    """A project whose worker has completed a job and failed another."""
    with project.worker() as worker:
        for job in (project.dispatch("greet", {"name": "Ada"}), project.dispatch("fail")):
            wait_until(lambda job=job: project.status(job) in ENDED, 30, "it has ended")
        worker.sigterm()
        assert worker.wait(30) == 0  # it writes the last statistics at its end
    assert project.row(WRITTEN) == (2,)
    with project.worker():
        yield project


@contextmanager
def watching(project: Project, *options: str, **env: str) -> Iterator[Terminal]:
    known = {
        **os.environ,
        **project.env,
        "TERM": "xterm-256color",
        "COLUMNS": "120",
        "LINES": "40",
    } | env
    command = [FORGE, "top", "--interval", "0.5", *options]
    with terminal(command, known, project.folder) as screen:
        yield screen


def last_screen(screen: Terminal) -> str:
    """Return what was drawn last."""
    return screen.shown.rsplit("\x1b[H", 1)[-1]


def test_keys_sort_and_filter_the_live_screen_and_q_restores_the_terminal(busy: Project) -> None:
    with watching(busy) as screen:
        wait_until(lambda: "greet" in last_screen(screen), 30, "the types are shown")
        assert "1 problem" in last_screen(screen) or "warning" in last_screen(screen)
        assert "\x1b[31m" in screen.shown  # the type that failed

        screen.press("f")
        wait_until(lambda: "failed %▾" in last_screen(screen), 30, "they are sorted")
        screen.press("/gre\r")
        wait_until(lambda: _types(screen) == ["greet"], 30, "they are filtered")
        screen.press("\x1b")
        wait_until(lambda: len(_types(screen)) == 2, 30, "all are shown again")
        screen.press("\x1b[A+?")  # an arrow is no key of this screen
        wait_until(lambda: "last 1h" in last_screen(screen), 30, "the window is longer")
        wait_until(lambda: "sort by rate, waiting" in last_screen(screen), 30, "the keys are shown")
        screen.press("q")

        assert screen.wait(20) == 0, screen.shown
    assert screen.shown.index(ALTERNATE_SCREEN) < screen.shown.index(MAIN_SCREEN)
    assert screen.shown.endswith("\x1b[?25h" + MAIN_SCREEN)  # the cursor is visible again


def test_new_jobs_appear_while_it_runs_and_ctrl_c_ends_it(busy: Project) -> None:
    with watching(busy) as screen:
        wait_until(lambda: "dead letters 1\x1b" in last_screen(screen), 30, "the state is shown")

        busy.dispatch("fail")

        wait_until(lambda: "dead letters 2\x1b" in last_screen(screen), 30, "the state is new")
        screen.ctrl_c()
        assert screen.wait(20) == 130
    assert MAIN_SCREEN in screen.shown
    assert "Traceback" not in screen.shown


def test_without_colour_words_say_it_in_a_terminal_of_any_size(busy: Project) -> None:
    with watching(busy, NO_COLOR="1", COLUMNS="", LINES="") as screen:
        wait_until(lambda: "greet" in last_screen(screen), 30, "the types are shown")
        for columns, lines, has_room in ((140, 40, True), (40, 12, False), (160, 30, True)):
            screen.resize(columns, lines)
            wait_until(lambda: _is_drawn(screen, columns, lines), 30, "it is redrawn")  # noqa: B023
            assert sorted(_types(screen)) == ["fail", "greet"]
            assert ("wait p50" in last_screen(screen)) is has_room
            assert ("slots" in last_screen(screen)) is has_room
        screen.press("q")
        assert screen.wait(20) == 0

    colours = [f"\x1b[{code}m" for code in (*range(30, 38), *range(90, 98))]
    assert not any(colour in screen.shown for colour in colours)
    assert "workers 1 alive" in screen.shown


def test_once_prints_for_people_and_for_programs(busy: Project) -> None:
    lines = busy.forge("top", "--once").stdout.splitlines()
    read = busy.json("top", "--once", "--json", "--sort", "failed", "--last", "1h")
    piped = busy.forge("top", "--type", "gree").stdout
    with watching(busy, TERM="dumb") as dumb:
        assert dumb.wait(30) == 0

    assert lines[0].startswith("forge top  ")
    assert any(line.startswith("greet ") for line in lines)
    assert "workers 1 alive" in "\n".join(lines)
    assert [item["job_type"] for item in read["types"]] == ["fail", "greet"]
    assert read["types"][0]["failed_percent"] == 100
    assert (read["last"], len(read["series"])) == ("1h", 61)
    assert read["overview"]["workers"]["alive"] == 1
    assert {"severity", "code", "message", "action"} <= read["findings"][0].keys()
    assert "\x1b" not in piped + dumb.shown
    assert "workers 1 alive" in dumb.shown
    assert "fail " not in piped


def test_wrong_options_are_refused(project: Project) -> None:
    ended = project.forge("top", "--once", "--last", "soon")

    assert ended.returncode == 2
    assert "not a duration" in ended.stderr


def _is_drawn(screen: Terminal, columns: int, lines: int) -> bool:
    """Return whether what was drawn last fills a screen of this size."""
    drawn = [ESCAPES.sub("", line) for line in last_screen(screen).splitlines()]
    return len(drawn) == lines and max(map(len, drawn)) == columns


def _types(screen: Terminal) -> list[str]:
    names = [line.split()[0] for line in last_screen(screen).splitlines() if line.split()]
    plain = [name.replace("\x1b[31m", "") for name in names]
    return [name for name in plain if name in ("greet", "fail")]
