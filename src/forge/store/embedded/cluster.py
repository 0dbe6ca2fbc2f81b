"""One private PostgreSQL server in one folder."""

import os
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from forge.store.embedded.binaries import Binaries, ServerNotStarted
from forge.store.embedded.processes import POLL_INTERVAL, spawn_detached, try_lock, wait_for_lock
from forge.store.embedded.setup import (
    DATABASE,
    LOOPBACK,
    PASSWORD_FILE,
    SOCKET_PORT,
    USER,
    Account,
    account_for,
    check_version,
    clear_sockets,
    create_data,
    free_port,
    socket_folder,
)
from forge.store.embedded.stopper import (
    FAST,
    IMMEDIATE,
    KILL,
    Step,
    cluster_name,
    orphans,
    postmaster_pid,
    stop_server,
)

MAX_LOG_BYTES = 10_000_000
TAIL_LINES = 20
START_TIMEOUT = 60.0
# Seconds before processes that survived their postmaster are killed.
ORPHAN_GRACE = 2.0
MAX_LAUNCHES = 3


class ServerLog:
    """The server's log file, from the last start on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def begin(self) -> None:
        """Mark a start; a large log is moved aside."""
        if self.path.exists() and self.path.stat().st_size > MAX_LOG_BYTES:
            self.path.replace(self.path.with_suffix(".log.old"))
        self._begin = self.path.stat().st_size if self.path.exists() else 0

    def tail(self) -> str:
        """Return the last lines since the start, as the end of an error message."""
        if not self.path.exists():
            return " It wrote no log. Try again."
        with self.path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
        tail = "".join(f"\n  {line}" for line in lines)
        return f" Fix what its log {self.path} reports and try again:{tail}"


READY = "ready"
# The request of a client for TLS, which the server answers with one byte.
SSL_REQUEST = struct.pack("!II", 8, 80877103)


@dataclass(frozen=True)
class Postmaster:
    """The lines of `postmaster.pid`."""

    pid: int
    port: int
    socket_folder: Path
    address: str
    status: str

    @classmethod
    def read(cls, data: Path) -> "Postmaster | None":
        """Read the file; None if it does not exist or is still being written."""
        try:
            lines = (data / "postmaster.pid").read_text().splitlines()
            pid, _folder, _started, port, socket_folder, address, _memory, status = lines[:8]
            return cls(int(pid), int(port), Path(socket_folder), address.strip(), status.strip())
        except (OSError, ValueError):
            return None

    def answers(self) -> bool:
        """Whether it accepts connections; after a crash the file may still say "ready"."""
        if self.status != READY:
            return False
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect(str(self.socket_folder / f".s.PGSQL.{self.port}"))
                # The kernel still accepts connections for a dying server; only a live one answers.
                connection.sendall(SSL_REQUEST)
                return connection.recv(1) != b""
            except OSError:
                return False


class Cluster:
    """A server with its data, socket, log and locks in `home`.

    It listens on a socket that only you can access; with `tcp` also on a free port of 127.0.0.1,
    with a password that the URL contains. `settings` are those of postgresql.conf.
    """

    def __init__(
        self,
        home: Path,
        binaries: Binaries | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        tcp: bool = False,
    ) -> None:
        self.home = home.resolve()
        self.data = self.home / "data"
        self.binaries = binaries or Binaries.from_wheel()
        self.settings = dict(settings or {})
        self.log = ServerLog(self.home / "postgres.log")
        self._running = self.home / "running.lock"
        self._tcp = tcp
        self._port: int | None = None
        self._account: Account | None = None

    def init(self) -> None:
        """Create the data folder, unless it exists."""
        self.make_home()
        lock = wait_for_lock(self._running, timeout=START_TIMEOUT)
        try:
            self._create(lock)
        finally:
            os.close(lock)

    def start(self, timeout: float = START_TIMEOUT) -> None:
        """Start the server, also after a crash; one that already runs is left alone."""
        self.make_home()
        deadline = time.monotonic() + timeout
        launches = 0
        orphaned_since: float | None = None
        while not self.is_ready():
            lock = try_lock(self._running)
            if lock is not None:
                launches += 1
                self._launch(lock, launches)
            # Locked but not ready: it is starting, or the processes of a crashed one are ending.
            elif not self._is_orphaned():
                orphaned_since = None
            elif orphaned_since is None:
                orphaned_since = time.monotonic()
            elif time.monotonic() > orphaned_since + ORPHAN_GRACE:
                self._end(KILL)
            if time.monotonic() > deadline:
                raise ServerNotStarted(f"The server is not ready yet.{self.log.tail()}")
            time.sleep(POLL_INTERVAL)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: "fast" ends sessions and checkpoints, "immediate" leaves a recovery."""
        self._end({"fast": FAST, "immediate": IMMEDIATE}[mode])

    def kill(self) -> None:
        """Kill the server as a power failure would, and wait until its last process has ended."""
        self._end(KILL)

    def is_running(self) -> bool:
        """Whether the server's main process is running."""
        return self.pid is not None

    def is_ready(self) -> bool:
        """Whether the server accepts connections."""
        postmaster = Postmaster.read(self.data)
        return postmaster is not None and postmaster.answers()

    @property
    def pid(self) -> int | None:
        """The id of the server's main process; None if it is not running."""
        return postmaster_pid(str(self.data))

    def url(self, database: str = DATABASE, user: str = USER, *, tcp: bool = False) -> str:
        """Return the URL of the running server: of its socket, or with `tcp` of its port."""
        postmaster = Postmaster.read(self.data)
        if postmaster is None:
            raise ServerNotStarted(f"The server in {self.home} is not running. Start it first.")
        if not tcp:
            place = f"host={quote(str(postmaster.socket_folder))}&port={postmaster.port}"
            return f"postgresql://{user}@/{database}?{place}"
        if not postmaster.address:
            raise ServerNotStarted(
                "The server has no TCP port. Start it as Cluster(..., tcp=True)."
            )
        password = (self.data / PASSWORD_FILE).read_text()
        return f"postgresql://{user}:{password}@{LOOPBACK}:{postmaster.port}/{database}"

    def make_home(self) -> None:
        """Create the folder, accessible only to you and the server."""
        if self.home.exists():
            return
        try:
            self.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServerNotStarted(
                f"Cannot create the folder {self.home}: {error.strerror}. Run in a writable "
                "folder, or set FORGE_DATABASE_URL to your own server."
            ) from error
        self.home.chmod(0o711 if os.geteuid() == 0 else 0o700)

    def _launch(self, lock: int, launches: int) -> None:
        try:
            # Retried, because the previous launch may have been killed rather than have failed.
            if launches > MAX_LAUNCHES:
                raise ServerNotStarted(f"The server did not start.{self.log.tail()}")
            self._spawn(self._create(lock), lock)
        finally:
            # From here on only the server's processes hold the lock.
            os.close(lock)

    def _spawn(self, account: Account, lock: int) -> None:
        if pid := self.pid:
            raise ServerNotStarted(
                f"Process {pid}, started by hand, already serves {self.data}. Stop it first."
            )
        sockets = socket_folder(self.home, account)
        # We hold the lock, so no server runs; the pid in the file may belong to any process now.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        clear_sockets(sockets)
        if self._tcp:
            self._port = free_port(self._port)
        settings = self.settings | {
            "cluster_name": cluster_name(str(self.data)),
            "unix_socket_directories": f'"{sockets}"',
            "listen_addresses": LOOPBACK if self._tcp else "",
            "port": str(self._port or SOCKET_PORT),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        command: list[str | Path] = [
            *account.prefix,
            self.binaries.postgres,
            "-D",
            self.data,
            *options,
        ]
        self.log.begin()
        spawn_detached(command, lock=lock, log=self.log.path)

    def _create(self, lock: int) -> Account:
        account = self._account or account_for(self.home, self.data, self.binaries.postgres)
        self._account = account
        if account.sees_all:
            # The server can read every file, so only root may access its socket.
            self.home.chmod(0o700)
        if not self.data.exists():
            sync = self.settings.get("fsync", "on") != "off"
            create_data(self.data, self.binaries, account, lock=lock, sync=sync)
        check_version(self.data, self.binaries)
        account.own(self.data)
        return account

    def _is_orphaned(self) -> bool:
        return self.pid is None and bool(orphans(str(self.data)))

    def _end(self, steps: tuple[Step, ...]) -> None:
        if not self.home.exists():
            return
        running = os.open(self._running, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not stop_server(str(self.data), running, steps):
                raise ServerNotStarted(f"The server in {self.home} did not stop. Stop it by hand.")
        finally:
            os.close(running)
