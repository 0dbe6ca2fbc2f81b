"""One PostgreSQL server of our own, in one folder."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from forge.store.embedded.account import Account, account_for
from forge.store.embedded.binaries import Binaries
from forge.store.embedded.creation import (
    DATABASE,
    PASSWORD_FILE,
    USER,
    check_version,
    create_data,
)
from forge.store.embedded.detached import spawn_detached
from forge.store.embedded.errors import ServerNotStarted
from forge.store.embedded.keeper import (
    FAST,
    IMMEDIATE,
    KILL,
    Step,
    cluster_name,
    orphans,
    postmaster_pid,
    stop_server,
)
from forge.store.embedded.locks import PAUSE, try_lock, wait_for_lock
from forge.store.embedded.logs import ServerLog
from forge.store.embedded.postmaster import Postmaster
from forge.store.embedded.sockets import (
    LOOPBACK,
    SOCKET_PORT,
    clear_sockets,
    free_port,
    socket_folder,
)

PATIENCE = 60.0
ORPHAN_PATIENCE = 2.0
MOST_LAUNCHES = 3


class Cluster:
    """A server whose data, socket, log and locks lie in `home`.

    It listens on a socket that only you can reach; with `tcp` also on a free port of 127.0.0.1,
    behind a password that the URL contains. `settings` are those of postgresql.conf.
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
        """Make the data folder, unless there is one."""
        self.make_home()
        lock = wait_for_lock(self._running, patience=PATIENCE)
        try:
            self._create(lock)
        finally:
            os.close(lock)

    def start(self, patience: float = PATIENCE) -> None:
        """Bring the server up, after a crash as well; one that already runs is left as it is."""
        self.make_home()
        deadline = time.monotonic() + patience
        launches = 0
        orphaned_since: float | None = None
        while not self.is_ready():
            lock = try_lock(self._running)
            if lock is not None:
                launches += 1
                self._launch(lock, launches)
            # Held, yet not ready: it is being started, or what is left of a crashed one is ending.
            elif not self._is_orphaned():
                orphaned_since = None
            elif orphaned_since is None:
                orphaned_since = time.monotonic()
            elif time.monotonic() > orphaned_since + ORPHAN_PATIENCE:
                self._end(KILL)
            if time.monotonic() > deadline:
                raise ServerNotStarted(f"The server is not ready yet.{self.log.tail()}")
            time.sleep(PAUSE)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: "fast" ends sessions and checkpoints, "immediate" leaves a recovery."""
        self._end({"fast": FAST, "immediate": IMMEDIATE}[mode])

    def kill(self) -> None:
        """Kill the server as a power cut would, and wait until its last process has gone."""
        self._end(KILL)

    def is_running(self) -> bool:
        """Whether the server's main process lives."""
        return self.pid is not None

    def is_ready(self) -> bool:
        """Whether the server takes connections."""
        postmaster = Postmaster.read(self.data)
        return postmaster is not None and postmaster.answers()

    @property
    def pid(self) -> int | None:
        """The server's main process, while it lives."""
        return postmaster_pid(str(self.data))

    def url(self, database: str = DATABASE, user: str = USER, *, tcp: bool = False) -> str:
        """Where the running server is reached: its socket, or with `tcp` its port."""
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
        """Make the folder; what is in it is for the server and you only."""
        if self.home.exists():
            return
        try:
            self.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServerNotStarted(
                f"Cannot make the folder {self.home}: {error.strerror}. Run where you may write, "
                "or set FORGE_DATABASE_URL to your own server."
            ) from error
        self.home.chmod(0o711 if os.geteuid() == 0 else 0o700)

    def _launch(self, lock: int, launches: int) -> None:
        try:
            # More than once, as the one before may have been killed rather than have failed.
            if launches > MOST_LAUNCHES:
                raise ServerNotStarted(f"The server did not start.{self.log.tail()}")
            self._spawn(self._create(lock), lock)
        finally:
            # From here on the server's processes alone hold it.
            os.close(lock)

    def _spawn(self, account: Account, lock: int) -> None:
        if pid := self.pid:
            raise ServerNotStarted(
                f"Process {pid} serves {self.data} already, and was started by hand. Stop it first."
            )
        sockets = socket_folder(self.home, account)
        # We hold the lock, so no server is left; the process named there may be any other by now.
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
            # The server may read every file, so nobody but root may come near its socket.
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
                raise ServerNotStarted(f"The server in {self.home} does not end. End it by hand.")
        finally:
            os.close(running)
