"""Two network namespaces with a link that can be cut: a server in one, a worker in the other."""

import asyncio
import os
import shutil
import subprocess
from functools import partial

from faultbench.outcome import CannotRun
from faultbench.postgres import DATABASE, USER, Postgres, account
from faultbench.stage import Stage

SERVER_ADDRESS, WORKER_ADDRESS = "10.99.7.1", "10.99.7.2"


class TwoNamespaces:
    """A server and a worker; the bench connects to the server through its Unix socket."""

    def __init__(self, server: Postgres, names: tuple[str, str]) -> None:
        self.server = server
        self._of_server, self._of_worker = names

    @classmethod
    async def open(cls, stage: Stage) -> "TwoNamespaces":
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("setpriv") is None:
            raise CannotRun("network namespaces need root, ip and setpriv")
        names = (f"fb{os.getpid()}s", f"fb{os.getpid()}w")
        for name in names:
            if await _call("ip", "netns", "add", name):
                raise CannotRun("cannot create network namespaces on this machine")
            stage.at_close(partial(subprocess.call, ["ip", "netns", "del", name]))
        await _connect(*names)
        return cls(await _server(stage, names[0]), names)

    @property
    def url(self) -> str:
        """The URL of the server, as seen by the worker."""
        return f"postgresql://{USER}@{SERVER_ADDRESS}:{self.server.port}/{DATABASE}"

    @property
    def worker_prefix(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self._of_worker)

    async def cut(self) -> None:
        """Drop every response to the worker: no FIN, no RST, no ICMP."""
        await _call("ip", "-n", self._of_server, "route", "add", "blackhole", WORKER_ADDRESS)

    async def heal(self) -> None:
        await _call("ip", "-n", self._of_server, "route", "del", "blackhole", WORKER_ADDRESS)


async def _connect(of_server: str, of_worker: str) -> None:
    inner, outer = f"{of_server}0", f"{of_worker}0"
    for command in (
        f"ip link add {inner} netns {of_server} type veth peer {outer} netns {of_worker}",
        f"ip -n {of_server} addr add {SERVER_ADDRESS}/30 dev {inner}",
        f"ip -n {of_worker} addr add {WORKER_ADDRESS}/30 dev {outer}",
        f"ip -n {of_server} link set {inner} up",
        f"ip -n {of_worker} link set {outer} up",
    ):
        if await _call(*command.split()):
            raise CannotRun(f"this command fails on this machine: {command}")


async def _server(stage: Stage, namespace: str) -> Postgres:
    folder = stage.folder / "postgres-in-namespace"
    server = await stage.workshop.copy(
        folder,
        listen_addresses=f"'{SERVER_ADDRESS}'",
        unix_socket_directories=f"'{folder}'",
    )
    with (server.data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {WORKER_ADDRESS}/30 trust\n")
    user, group = account() or (0, 0)
    as_account = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
    server.prefix = ("ip", "netns", "exec", namespace, *as_account)
    server.host = str(folder)
    stage.adopt(server)
    await server.start()
    return server


async def _call(*command: str) -> int:
    return await asyncio.to_thread(subprocess.call, command)
