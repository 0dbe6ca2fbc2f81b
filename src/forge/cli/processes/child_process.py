"""The processes of commands: start, stop, exit with the parent, collect garbage."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

# Exit code of a process that would fail the same way if it were restarted.
STARTUP_FAILED = 3


def on_stop_signal(stop: Callable[[], None], lifeline: int | None = None) -> None:
    """Call `stop` at each SIGTERM or SIGINT, and when the parent process ends."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if lifeline is not None:

        def on_parent_exit() -> None:
            loop.remove_reader(lifeline)
            stop()

        # The parent holds the other end of this pipe open for as long as it lives.
        loop.add_reader(lifeline, on_parent_exit)


def tune_garbage_collector() -> None:
    """Exclude the app's imported objects from garbage collection, and collect less often.

    Attempts and requests create short-lived objects without cycles. With Python's defaults a fifth
    of a busy process's time went into scanning all objects of the app.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


class ForgeProcess:
    """A child `forge worker` or `forge server`; it stops when its parent ends."""

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
        """Run `forge` with these arguments and let it inherit these sockets."""
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
                # Only the parent receives Ctrl-C and forwards it.
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
        """Send SIGTERM: the first lets it finish, the second stops it at once."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until it exits and return its exit code, negative for a signal."""
        code = await self._process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        return code
