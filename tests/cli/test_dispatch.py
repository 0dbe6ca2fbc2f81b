"""`forge dispatch`: inputs, options, and watching."""

import json
import signal
from os import kill
from pathlib import Path
from uuid import UUID, uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]
SHOP = ("--app", "shop:app")


def test_dispatch_prints_only_the_job_id(project: Project) -> None:
    ended = project.forge("dispatch", "greet", '{"name": "Ada"}', *SHOP)

    assert ended.returncode == 0, ended.stderr
    found = project.row("select id, status, input from forge_jobs")
    assert found == (UUID(ended.stdout.strip()), "pending", {"name": "Ada"})


def test_an_input_comes_from_a_file_or_from_stdin(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"name": "from a file"}')

    project.forge("dispatch", "greet", f"@{file}", *SHOP)
    project.forge("dispatch", "greet", "-", *SHOP, stdin='{"name": "from stdin"}')

    names = project.rows("select input ->> 'name' from forge_jobs order by created_at, id")
    assert names == [("from a file",), ("from stdin",)]


def test_every_option_reaches_the_job(project: Project) -> None:
    correlation = uuid4()

    project.dispatch(
        "greet",
        {"name": "Ada"},
        *("--priority", "high"),
        *("--scheduled-at", "2131-01-31T12:00:00Z"),
        *("--expires-at", "2132-01-31T12:00:00+01:00"),
        *("--idempotency-key", "once"),
        *("--tenant-id", "7"),
        *("--correlation-id", str(correlation)),
        *("--payload-version", "2.0"),
        *("--queue", "mail"),
        *("--tag", "a", "--tag", "b"),
    )

    found = project.row(
        """select priority, scheduled_at = '2131-01-31 12:00+00',
                  expires_at = '2132-01-31 11:00+00', idempotency_key, tenant_id, correlation_id,
                  payload_version, queue, tags
           from forge_jobs"""
    )
    assert found == (75, True, True, "once", 7, correlation, "2.0", "mail", ["a", "b"])


def test_a_delay_counts_from_now(project: Project) -> None:
    project.dispatch("greet", {"name": "Ada"}, "--delay", "1h", "--priority", "25")

    found = project.row(
        """select scheduled_at between now() + '59 min' and now() + '61 min', priority
           from forge_jobs"""
    )
    assert found == (True, 25)


def test_dispatch_with_a_known_key_reports_deduplication(project: Project) -> None:
    first = project.json("dispatch", "greet", "{}", *SHOP, "--idempotency-key", "k")
    second = project.json("dispatch", "greet", "{}", *SHOP, "--idempotency-key", "k")

    assert not first["deduplicated"]
    assert second == {"job_id": first["job_id"], "deduplicated": True}


def test_dispatch_by_name_without_the_code(project: Project) -> None:
    assert project.forge("migrate", *SHOP).returncode == 0

    ended = project.forge("dispatch", "greet", '{"name": "Ada"}')

    assert ended.returncode == 0, ended.stderr


def test_dispatch_of_an_unknown_type_fails(project: Project) -> None:
    ended = project.forge("dispatch", "nonsense")

    assert ended.returncode == 1
    assert "unknown job type 'nonsense'; start a worker" in ended.stderr


def test_misspelt_type_gets_a_suggestion(project: Project) -> None:
    assert project.forge("migrate", "--app", "shop:app").returncode == 0

    ended = project.forge("dispatch", "wiat_at")

    assert ended.returncode == 1
    assert "unknown job type 'wiat_at': did you mean 'wait_at'?;" in ended.stderr


def test_invalid_input_or_option_is_a_usage_error(project: Project) -> None:
    for arguments in (
        ("{name: 1}",),
        ("[" * 100_000,),
        ("1" * 5000,),
        ('{"a": NaN}',),
        ("@/nowhere.json",),
        ("{}", "--delay", "soon"),
        ("{}", "--priority", "urgent"),
        ("{}", "--scheduled-at", "tomorrow"),
        ("{}", "--scheduled-at", "2131-01-31T12:00:00"),
    ):
        ended = project.forge("dispatch", "greet", *arguments, *SHOP)

        assert ended.returncode == 2, arguments
        assert "Traceback" not in ended.stderr
    assert project.rows("select id from forge_jobs") == []


def test_watch_exit_code_reports_the_outcome(project: Project) -> None:
    with project.worker():
        good = project.forge("dispatch", "greet", '{"name": "Ada"}', *SHOP, "--watch")
        bad = project.forge("dispatch", "fail", *SHOP, "--watch")
        lines = project.forge("dispatch", "greet", '{"name": "Ada"}', *SHOP, "--watch", "--json")

    assert good.returncode == 0
    assert "completed" in good.stderr
    assert bad.returncode == 1
    assert "no luck today" in bad.stderr
    records = [json.loads(line) for line in lines.stdout.splitlines()]
    assert records[-1]["id"] == records[0]["job_id"]
    assert (records[-1]["status"], records[-1]["output"]) == ("completed", {"text": "hello Ada"})


def test_watch_of_a_cancelled_job_exits_with_1(project: Project, tmp_path: Path) -> None:
    gate = json.dumps({"gate": str(tmp_path / "never")})
    with project.worker(), project.start("dispatch", "wait_at", gate, *SHOP, "--watch") as watching:
        job = running_job(project)

        assert project.forge("jobs", "cancel", job).returncode == 0

        assert watching.wait(20) == 1
        assert "cancelled" in watching.output()


def test_ctrl_c_stops_watching_but_not_the_job(project: Project, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = ("dispatch", "wait_at", json.dumps({"gate": str(gate)}), *SHOP, "--watch")
    with project.worker(), project.start(*command) as watching:
        job = running_job(project)
        wait_until(lambda: "running" in watching.output(), 20, "it is shown")

        kill(watching.pid, signal.SIGINT)

        assert watching.wait(20) == 130
        assert f"the job continues: `forge jobs show {job}`" in watching.output()
        gate.touch()
        project.wait_for_status(job, "completed")


def running_job(project: Project) -> str:
    query = "select id from forge_jobs where job_type = 'wait_at' and status = 'running'"
    found = wait_until(lambda: project.rows(query), 20, "it runs")
    return str(found[0][0])
