"""Patroni with etcd, both from Debian: a cluster with automatic failover."""

import asyncio
import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from faultbench.client import SET_UP
from faultbench.outcome import CannotRun
from faultbench.postgres import DATABASE, USER, account, debian_binaries, free_port
from faultbench.process import Process, until
from faultbench.proxy import Proxy
from faultbench.stage import Stage
from faultbench.workshop import APP, migrate

MAJOR = 15
# The smallest value that Patroni allows: it detects a lost leader after this many seconds.
TTL = 20


@dataclass
class Node:
    """One member of the cluster."""

    name: str
    folder: Path
    port: int
    rest: int
    process: Process | None = None

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    async def is_primary(self) -> bool:
        return await asyncio.to_thread(self._has_role, "primary")

    async def is_synchronous(self) -> bool:
        return await asyncio.to_thread(self._has_role, "synchronous")

    def _has_role(self, role: str) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.rest}/{role}", timeout=2
            ) as response:
                return bool(response.status == 200)
        except (urllib.error.HTTPError, OSError):
            return False


async def crash_under_patroni(stage: Stage) -> None:
    """Kill all processes of the leader; Patroni promotes the standby."""
    nodes = await _cluster(stage)
    (leader,) = [node for node in nodes if await node.is_primary()]
    (standby,) = [node for node in nodes if node is not leader]
    connection = await asyncpg.connect(leader.url_of("postgres"))
    await connection.execute(f"create database {DATABASE}")
    await connection.close()
    await migrate(leader.url, APP)
    connection = await asyncpg.connect(leader.url)
    await connection.execute(SET_UP)
    await connection.close()

    proxy = await stage.proxy(leader.url)
    before = stage.client_of(leader.url)
    workers = [await stage.worker(before, url=proxy.url) for _ in range(2)]
    dispatcher = stage.client_of(proxy.url)
    kinds = ("work", "once", "effect", "querying")
    loading = asyncio.create_task(dispatcher.load(45, rate=15, rng=stage.rng, kinds=kinds))
    await asyncio.sleep(stage.rng.uniform(4, 7))

    assert leader.process is not None
    _kill_tree(leader.process.pid)
    crashed = time.monotonic()
    await until(standby.is_primary, 90, "Patroni has promoted the standby")
    promoted = time.monotonic()
    await _follow(proxy, standby)
    stage.recovered((await stage.until_started_since(promoted)).monotonic - promoted, within=10)
    await loading
    after = stage.client_of(standby.url)
    await stage.judge(after, timeout=90)
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")
    stage.note(
        f"Patroni with etcd: promoted {promoted - crashed:.0f} s after the crash (ttl {TTL} s)"
    )


async def _follow(proxy: Proxy, node: Node) -> None:
    """Point the proxy at the new leader, like HAProxy with Patroni's health checks."""
    proxy.point_at(node.url)
    proxy.reset()


async def _cluster(stage: Stage) -> list[Node]:
    programs = {name: shutil.which(name) for name in ("patroni", "etcd")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        raise CannotRun(f"not installed: {', '.join(missing)} (Debian: patroni, etcd-server)")
    binaries = debian_binaries(MAJOR)
    etcd = await _etcd(stage, str(programs["etcd"]))
    nodes = []
    for number in (1, 2):
        folder = stage.folder / f"patroni-{number}"
        folder.mkdir()
        node = Node(f"node{number}", folder, free_port(), free_port())
        config = folder / "patroni.json"
        config.write_text(json.dumps(_configuration(node, etcd, binaries)))
        if owner := account():
            os.chown(folder, *owner)
        node.process = stage.spawn(str(programs["patroni"]), config, account=account(), cwd=folder)
        nodes.append(node)
        if number == 1:
            await until(node.is_primary, 90, f"Patroni has a leader: {node.process.log()[-500:]}")
    await until(nodes[1].is_synchronous, 90, "the other node is a synchronous standby")
    return nodes


async def _etcd(stage: Stage, program: str) -> int:
    client, peer = free_port(), free_port()
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    stage.spawn(
        program,
        f"--data-dir={stage.folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    )

    def healthy() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2) as response:
                return b"true" in response.read()
        except OSError:
            return False

    await until(lambda: asyncio.to_thread(healthy), 30, "etcd is healthy")
    return client


def _configuration(node: Node, etcd: int, binaries: Path) -> dict[str, object]:
    address = f"127.0.0.1:{node.port}"
    return {
        "scope": "bench",
        "name": node.name,
        "restapi": {
            "listen": f"127.0.0.1:{node.rest}",
            "connect_address": f"127.0.0.1:{node.rest}",
        },
        "etcd3": {"host": f"127.0.0.1:{etcd}"},
        "bootstrap": {
            "dcs": {
                "ttl": TTL,
                "loop_wait": 2,
                "retry_timeout": 5,
                "synchronous_mode": True,
                "postgresql": {"parameters": {"max_connections": 120, "shared_buffers": "64MB"}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            "pg_hba": [
                "host all all 127.0.0.1/32 trust",
                "host replication all 127.0.0.1/32 trust",
            ],
        },
        "postgresql": {
            "listen": address,
            "connect_address": address,
            "data_dir": str(node.folder / "data"),
            "bin_dir": str(binaries),
            "pgpass": str(node.folder / "pgpass"),
            "authentication": {
                "superuser": {"username": USER},
                "replication": {"username": "replicator"},
            },
            "parameters": {"unix_socket_directories": str(node.folder)},
        },
    }


def _kill_tree(pid: int) -> None:
    """SIGKILL a process and everything below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    with suppress(OSError):
        below = [int(child) for child in children.read_text().split()]
        os.kill(pid, signal.SIGKILL)
        for child in below:
            _kill_tree(child)
