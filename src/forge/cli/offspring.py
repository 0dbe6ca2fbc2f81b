"""A command as a process: what makes it stop, and how it is bound to the life of another."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

# How one ends that would fail in the same way if it were started again.
CANNOT_BEGIN = 3


def obey(stop: Callable[[], None], lifeline: int | None = None) -> None:
    """Have each signal to stop, and the end of whoever started us, call this."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if lifeline is not None:

        def parent_is_gone() -> None:
            loop.remove_reader(lifeline)
            stop()

        # The other end of this pipe is open for as long as the process that started us lives.
        loop.add_reader(lifeline, parent_is_gone)


class ForgeProcess:
    """One `forge worker` or `forge server`; it stops when told to, or when its parent is gone."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        *,
        sockets: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
    ) -> "ForgeProcess":
        """Run `forge` with these arguments, among them the command, and leave it these sockets."""
        theirs, ours = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "forge.cli.main",
                *arguments,
                "--lifeline",
                str(theirs),
                pass_fds=[theirs, *sockets],
                env={**os.environ, **(env or {})},
                # Ctrl-C goes to the parent alone, which passes it on as it sees fit.
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(process, ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Ask it to stop: the first time in its own time, the second time at once."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait for its end and return its exit code, negative for a signal."""
        code = await self._process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        return code
