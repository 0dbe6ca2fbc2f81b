"""Output in a terminal: progress bar, widths and escaped job output."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.command import APPS, FORGE, Project, project_fixture
from tests.cli.terminal import terminal
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]
SHOP = ("--app", "shop:app")
# What rich would take for markup, and a terminal for the order to change its title.
HOSTILE = "row 7 [/nope] \x1b]0;owned\x07\x9b2J"
AS_WORDS = r"row 7 [/nope] \x1b]0;owned\x07\x9b2J"


def test_progress_bar_shows_percentage_and_message(project: Project, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with project.worker(), watching(project, gate=gate, percent=40, message=HOSTILE) as screen:
        wait_until(lambda: "40%" in screen.shown, 30, "the progress is shown")

        gate.touch()

        assert screen.wait(20) == 0, screen.shown
    assert "━━━" in screen.shown
    assert "100%" in screen.shown
    assert '"passed"' in screen.shown
    assert AS_WORDS in screen.shown
    assert "\x1b]" not in screen.shown


def test_ctrl_c_stops_the_progress_bar_but_not_the_job(project: Project, tmp_path: Path) -> None:
    with project.worker(), watching(project, gate=tmp_path / "never", percent=40) as screen:
        wait_until(lambda: "40%" in screen.shown, 30, "the progress is shown")

        screen.ctrl_c()

        assert screen.wait(20) == 130, screen.shown
        assert "the job continues" in screen.shown
        assert "Traceback" not in screen.shown
        assert project.row("select status from forge_jobs") == ("running",)


def test_terminal_escapes_in_job_output_are_neutralised(project: Project) -> None:
    with project.worker():
        job = project.dispatch("fail", {"why": HOSTILE})
        project.wait_for_status(job, "dead_letter")

    letter = str(project.row("select dlq_id from forge_dead_letters")[0])
    for command in (
        ("jobs", "list"),
        ("jobs", "show", job),
        ("dlq", "list"),
        ("dlq", "show", letter),
    ):
        shown = project.forge(*command).stdout

        assert AS_WORDS in shown, command
        assert "\x1b" not in shown, command
        assert "\x9b" not in project.forge(*command, "--json").stdout, command
    assert project.json("jobs", "show", job)["last_error"] == HOSTILE


def test_an_id_is_never_cut_however_narrow_the_terminal(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"})

    with terminal([FORGE, "jobs", "list"], environment(project, columns=60), APPS) as screen:
        assert screen.wait(30) == 0, screen.shown
    assert job in screen.shown


def watching(project: Project, *, gate: Path, **input: Any) -> Any:
    command = ("dispatch", "wait_at", json.dumps({"gate": str(gate), **input}), *SHOP, "--watch")
    return terminal([FORGE, *command], environment(project, columns=160), APPS)


def environment(project: Project, *, columns: int) -> dict[str, str]:
    return {**os.environ, **project.env, "TERM": "xterm", "COLUMNS": str(columns)}


def test_unencodable_characters_are_escaped(project: Project) -> None:
    job = project.dispatch("greet", {"name": "日本 😀"})
    project.env["PYTHONIOENCODING"] = "latin-1"

    shown = project.forge("jobs", "show", job)
    as_json = project.json("jobs", "show", job)

    assert shown.returncode == 0, shown.stderr
    assert r"\u65e5\u672c" in shown.stdout
    assert as_json["input"]["name"] == "日本 😀"


def test_closed_pipe_is_not_an_error(project: Project) -> None:
    project.rows("insert into forge_jobs (job_type) select 'greet' from generate_series(1, 3000)")
    project.rows(
        "insert into forge_audit_events (event, notes) "
        "select 'e', repeat('x', 200) from generate_series(1, 3000)"
    )
    project.rows(
        "insert into forge_dead_letters (job_id, job_type, queue, priority, payload, "
        "payload_version, attempt_count, original_created_at, original_scheduled_at) "
        "select id, job_type, queue, priority, input, '1.0', 1, created_at, scheduled_at "
        "from forge_jobs"
    )

    for command in ("jobs list", "dlq list", "audit", "jobs list --json", "audit --json"):
        ended = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {FORGE} {command} --limit 3000 | head -n 1"],
            cwd=project.folder,
            env={**os.environ, **project.env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert (command, ended.returncode, ended.stderr) == (command, 0, "")
