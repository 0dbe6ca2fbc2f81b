"""One child process: started, watched, and killed together with whatever it started."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from forge.core.attempt_log import LogLine
from forge.core.errors import ForgeError
from forge.worker.attempts import Attempt
from forge.worker.handlers.child_logs import ChildOutput, log_from_child
from forge.worker.handlers.process_groups import ProcessGroups

# A child has this many seconds to import Forge before it counts as one that cannot start.
START_TIMEOUT = 60.0
# What a child sent before it ended arrives within this many seconds. The end of the socket may
# never come: a process that has left the group can hold it open.
LAST_LINES = 1.0


class ChildNotStarted(ForgeError):
    """A child process could not be started, or ended before it took its first order."""


class ChildProcess:
    """One process and the socket to it: a line of JSON each way per order, notes in between."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        groups: ProcessGroups,
    ) -> None:
        self._process = process
        self._reader, self._writer = streams
        self._groups = groups
        self._is_killed = False
        self._outputs: Sequence[ChildOutput] = ()
        self._ending = asyncio.ensure_future(self._watch())
        self.attempt: Attempt | None = None
        # Whether it has read the last order: one that ended before that ran nothing of it.
        self.has_taken = False
        # How many attempts ran in it before.
        self.served = 0

    @property
    def is_alive(self) -> bool:
        return not (self._is_killed or self._ending.done() or self._reader.at_eof())

    @classmethod
    async def start(cls, groups: ProcessGroups) -> Self:
        """Start a process and return it when it can take an order."""
        try:
            child = await cls._spawn(groups)
        except OSError as error:
            raise ChildNotStarted(f"a child process could not be started: {error}") from error
        try:
            async with asyncio.timeout(START_TIMEOUT):
                is_ready = await child._line()
        except BaseException as error:
            await child.close()
            if isinstance(error, TimeoutError):
                slow = f"a child process was not ready within {START_TIMEOUT:g} s"
                raise ChildNotStarted(slow) from None
            raise
        if not is_ready:
            raise ChildNotStarted(f"a child process ended before it was ready: {await child.end()}")
        return child

    @classmethod
    async def _spawn(cls, groups: ProcessGroups) -> Self:
        ours, theirs = socket.socketpair()
        outputs = ChildOutput.both()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "forge.worker.handlers.child"),
                *(str(theirs.fileno()), str(os.getpid())),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=outputs[0].theirs if outputs else None,
                stderr=outputs[1].theirs if outputs else None,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                # It leads a process group, so that what its handler starts can be killed with it.
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            for output in outputs:
                output.close()
            raise
        finally:
            theirs.close()
            for output in outputs:
                output.close_theirs()
        streams = await asyncio.open_connection(sock=ours, limit=2**26)
        child = cls(process, streams, groups)
        child._outputs = outputs
        for output in outputs:
            output.read_from(child)
        try:
            await groups.add(process.pid)
        except BaseException:
            await child.close()
            raise
        return child

    async def run(self, order: dict[str, Any], attempt: Attempt) -> dict[str, Any] | None:
        """Send an order and return its answer; None when the process ended without one."""
        self.attempt = attempt
        self.has_taken = False
        try:
            with suppress(ConnectionError):
                self._writer.write(json.dumps(order).encode() + b"\n")
                await self._writer.drain()
            while line := await self._line():
                message = json.loads(line)
                self.has_taken |= "taken" in message
                _take_news(message, attempt)
                if "outcome" in message:
                    return message  # type: ignore[no-any-return]
            return None
        finally:
            for output in self._outputs:
                output.drain()
            self.attempt = None
            self.served += 1

    async def _line(self) -> bytes:
        """Return the next line; empty when the process has ended and all it sent was read."""
        reading = asyncio.ensure_future(self._reader.readline())
        try:
            await asyncio.wait({reading, self._ending}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait({reading}, timeout=LAST_LINES)
            return reading.result() if reading.done() else b""
        except (ConnectionError, ValueError):
            return b""
        finally:
            reading.cancel()

    def kill(self) -> None:
        self._is_killed = True
        if not self._ending.done():
            self._groups.kill(self._process.pid)

    async def end(self) -> str:
        """Wait for the process to be gone and say how it went."""
        self._writer.close()
        code = await self._ending
        for output in self._outputs:
            output.close()
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    async def close(self) -> None:
        self.kill()
        await self.end()

    async def _watch(self) -> int:
        """Wait for the end of the process, also while processes that it started go on."""
        code = await self._process.wait()
        self._groups.remove(self._process.pid)
        return code


def _take_news(message: dict[str, Any], attempt: Attempt) -> None:
    if "log" in message:
        log_from_child(message["log"])
    if message.get("note"):
        attempt.context.add_note(**message["note"])
    if message.get("lines"):
        attempt.context.add_lines(LogLine(*line) for line in message["lines"])
    if "completed" in message:
        attempt.context.completed = True
