"""One run of one row: its processes, servers, history and findings."""

import asyncio
import json
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faultbench.checker import Verdict, judge
from faultbench.children import ChildWatch
from faultbench.client import LOST, Client
from faultbench.history import VARIABLE, Event, History, Kind
from faultbench.outcome import Outcome, PromiseBroken
from faultbench.postgres import Postgres
from faultbench.process import MARK, Process, end_marked, until
from faultbench.proxy import Proxy
from faultbench.workshop import Workshop


class Worker(Process):
    """A `forge worker` process and its worker id."""

    id: str


class Stage:
    """The environment of one scenario run."""

    def __init__(
        self, workshop: Workshop, folder: Path, seed: str, *, run: int = 1, soak: float = 0
    ) -> None:
        self.workshop = workshop
        self.folder = folder
        self.rng = random.Random(seed)
        self.run = run
        # The duration of the endurance row in seconds; 0 uses its default.
        self.soak = soak
        self.outcome = Outcome(runs=1)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        self.history = History(folder / "history.jsonl")
        self.processes: list[Process] = []
        self._children = ChildWatch(self.history, lambda: {each.pid for each in self.processes})
        self._mark = uuid.uuid4().hex
        self._servers: list[Postgres] = []
        self._clients: list[Client] = []
        self._proxies: list[Proxy] = []
        self._client: Client | None = None
        self._at_close: list[Callable[[], object]] = []

    # Servers and clients

    async def client(self) -> Client:
        """Return a client of this run's database, which the first call creates."""
        if self._client is None:
            self._client = self.client_of(await self.workshop.database())
        return self._client

    def client_of(self, url: str) -> Client:
        name = f"{len(self._clients)}." if self._clients else ""
        client = Client(url, self.history, name=name)
        self._clients.append(client)
        return client

    async def server(self, binaries: Path | None = None, **settings: str) -> Postgres:
        """Start a separate server for this run, with all durability settings on."""
        folder = self.folder / f"postgres-{len(self._servers)}"
        server = await self.workshop.copy(folder, binaries, **settings)
        self._servers.append(server)
        await server.start()
        return server

    def adopt(self, server: Postgres) -> None:
        """Stop this server at the end of the run."""
        self._servers.append(server)

    async def standby(self, primary: Postgres, **settings: str) -> Postgres:
        """Start a streaming standby of a server."""
        folder = self.folder / f"postgres-{len(self._servers)}"
        server = Postgres(
            folder, binaries=primary.binaries, settings={**primary.settings, **settings}
        )
        self._servers.append(server)
        await asyncio.to_thread(server.base_backup, primary)
        await server.start()
        return server

    async def proxy(self, url: str) -> Proxy:
        """Start a TCP proxy in front of the server at this URL."""
        proxy = await Proxy.open(url, random.Random(self.rng.random()))
        self._proxies.append(proxy)
        return proxy

    # Processes

    async def worker(
        self,
        client: Client,
        *args: str,
        url: str | None = None,
        id: str | None = None,
        app: str | None = None,
        prefix: Iterable[str] = (),
        ready: bool = True,
        env: dict[str, str] | None = None,
        **settings: Any,
    ) -> Worker:
        """Start `forge worker` and wait for a heartbeat; keywords are [worker] settings."""
        worker_id = id or str(uuid.uuid4())
        named = {f"FORGE_WORKER_{name.upper()}": str(value) for name, value in settings.items()}
        single = (
            {}
            if any(arg.startswith("--processes") for arg in args)
            else {"FORGE_WORKER_ID": worker_id}
        )
        began = time.time()
        worker = Worker(
            [
                *prefix,
                sys.executable,
                "-m",
                "forge.cli.main",
                "worker",
                app or self.workshop.app,
                *args,
            ],
            self.folder / f"worker-{len(self.processes)}.log",
            env={
                "FORGE_DATABASE_URL": url or client.url,
                "FORGE_WORKER_METRICS_PORT": "off",
                **single,
                **named,
                **self._environment(),
                **(env or {}),
            },
            history=self.history,
        )
        worker.id = worker_id
        self.processes.append(worker)
        if ready:
            await self.until_alive(client, worker, since=began)
        return worker

    async def until_alive(
        self, client: Client, worker: Worker, *, since: float, timeout: float = 60
    ) -> None:
        """Wait until the database has a recent heartbeat of a worker."""

        async def has_heartbeat() -> bool:
            if not worker.is_alive:
                raise PromiseBroken(
                    f"a worker exited with code {worker.code}: {worker.log()[-500:]}"
                )
            try:
                return bool(
                    await client.value(
                        "select exists (select from forge_workers where (id = $1::text::uuid "
                        "or $1 is null) and last_heartbeat >= to_timestamp($2))",
                        worker.id,
                        since,
                    )
                )
            except LOST:
                return False

        await until(has_heartbeat, timeout, f"the worker with pid {worker.pid} sends heartbeats")

    def forge(self, client: Client, *args: str) -> Process:
        """Start a `forge` command against a client's database."""
        return self.spawn(
            sys.executable,
            "-m",
            "forge.cli.main",
            *args,
            env={"FORGE_DATABASE_URL": client.url, "FORGE_APP": self.workshop.app},
        )

    async def until_started_since(self, since: float, timeout: float = 60) -> Event:
        """Wait for the first start of any job after a point in time."""

        def first() -> Event | None:
            later = (event for event in self.starts() if event.monotonic > since)
            return next(later, None)

        found: Event = await until(first, timeout, "jobs start again")
        return found

    def spawn(
        self, *args: str | Path, env: dict[str, str] | None = None, **options: Any
    ) -> Process:
        """Start any other process of this run."""
        process = Process(
            args,
            self.folder / f"process-{len(self.processes)}.log",
            env={**self._environment(), **(env or {})},
            history=self.history,
            **options,
        )
        self.processes.append(process)
        return process

    def _environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.history.path), MARK: self._mark, **self.workshop.env}

    # History of handlers

    async def until_started(
        self, *marks: str, lease: int | None = None, timeout: float = 60
    ) -> list[Event]:
        """Wait until these jobs have started, under this lease or any."""

        def started() -> list[Event] | None:
            found = {event.mark: event for event in self.starts(lease=lease)}
            return [found[mark] for mark in marks] if set(marks) <= set(found) else None

        what = f"{', '.join(marks[:5])} started (lease {lease or 'any'})"
        found: list[Event] = await until(started, timeout, what)
        return found

    def starts(self, mark: str | None = None, *, lease: int | None = None) -> list[Event]:
        return [
            event
            for event in self.history.events(Kind.STARTED)
            if mark in (None, event.mark) and lease in (None, event.lease)
        ]

    async def until_ended(self, *marks: str, timeout: float = 60) -> None:
        def ended() -> bool:
            return set(marks) <= {event.mark for event in self.history.events(Kind.ENDED)}

        await until(ended, timeout, f"{', '.join(marks[:5])} ended")

    def gate(self, name: str = "gate") -> "Gate":
        return Gate(self.folder / name)

    # Findings

    def require(self, holds: object, otherwise: str) -> None:
        """Fail the row unless this holds."""
        if not holds:
            raise PromiseBroken(otherwise)

    def recovered(self, seconds: float, *, within: float | None = None) -> None:
        """Record how long recovery took; the row keeps the longest."""
        self.outcome.recovery = max(self.outcome.recovery or 0.0, seconds)
        if within is not None and seconds > within:
            raise PromiseBroken(
                f"recovery took {seconds:.1f} s, more than the promised {within:g} s"
            )

    def note(self, text: str) -> None:
        self.outcome.notes.append(text)

    async def judge(
        self, client: Client, *, allow: Iterable[str] = (), timeout: float = 90, wait: bool = True
    ) -> Verdict:
        """Wait until all jobs are final, compare history and database, and count."""
        late: TimeoutError | None = None
        if wait:
            try:
                await client.until_final(timeout)
            except TimeoutError as error:
                late = error
        rows, moves = await client.rows(), await client.moves()
        state = [*map(asdict, rows), *map(asdict, moves)]
        (self.folder / "database.json").write_text(json.dumps(state, indent=1))
        found = judge(self.history.events(), rows, moves)
        out = self.outcome
        out.jobs, out.lost = found.jobs, len(found.lost)
        out.duplicated, out.stopped = len(found.duplicated), len(found.stopped)
        out.overlap = found.overlap
        if broken := found.broken(allow=allow):
            named = "; ".join(f"{name}: {', '.join(marks[:3])}" for name, marks in broken.items())
            raise PromiseBroken(f"{named} ({found})")
        if late is not None:
            raise PromiseBroken(str(late))
        return found

    def at_close(self, cleanup: Callable[[], object]) -> None:
        """Register a cleanup to run after every process and server has stopped."""
        self._at_close.append(cleanup)

    async def close(self) -> None:
        self._children.stop()
        for proxy in self._proxies:
            await proxy.close()
        for client in self._clients:
            await client.close()
        for process in self.processes:
            process.close()
        end_marked(self._mark)
        for server in self._servers:
            with suppress(OSError):
                server.close()
        for cleanup in reversed(self._at_close):
            cleanup()


class Gate:
    """A file that handlers wait for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def input(self) -> dict[str, Any]:
        return {"gate": str(self.path)}

    def open(self, *, lease: int | None = None) -> None:
        """Let all attempts continue, or only the one with this lease."""
        Path(f"{self.path}{'' if lease is None else f'.{lease}'}").touch()
