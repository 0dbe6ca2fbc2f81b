"""The process groups that a worker's children lead, and what kills them if the worker dies."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from forge.worker.handlers import group_killer


class ProcessGroups:
    """Knows every group that is alive, and reports it to the process that survives this one."""

    def __init__(self) -> None:
        self._killer: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._pipe = -1

    async def add(self, group: int) -> None:
        async with self._starting:
            if self._killer is None:
                await self._start_killer()
        self._write(f"+{group}\n")

    def kill(self, group: int) -> None:
        """Kill the leader of a group and whatever it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)

    def remove(self, group: int) -> None:
        """Kill what is left of a group whose leader has ended."""
        self.kill(group)
        self._write(f"-{group}\n")

    async def close(self) -> None:
        killer, self._killer = self._killer, None
        if killer is not None:
            os.close(self._pipe)
            await killer.wait()

    async def _start_killer(self) -> None:
        theirs, self._pipe = os.pipe()
        try:
            self._killer = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", group_killer.__file__),
                stdin=theirs,
                stdout=asyncio.subprocess.DEVNULL,
                # A Ctrl-C is not for it.
                start_new_session=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(theirs)

    def _write(self, line: str) -> None:
        if self._killer is not None:
            with suppress(OSError):  # it was killed; the children themselves end all the same
                os.write(self._pipe, line.encode())
