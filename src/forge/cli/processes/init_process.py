"""`forge` as PID 1 of a container: a small init that forwards signals and reaps orphans."""

import os
import signal
import time
from contextlib import suppress

# Seconds that orphaned processes have to exit after SIGTERM.
ORPHAN_TIMEOUT = 5.0

# Synchronous faults of the init process itself: blocked, they would loop forever.
_FAULTS = {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGTRAP,
}
# Signals to the init process alone: ended children and terminal access.
_NOT_FORWARDED = {signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU}


def run_below_init() -> None:
    """Return at once unless this process is PID 1; else return in a child and act as its init.

    The kernel gives PID 1 every orphan of the container and drops signals that it does not handle.
    A worker that reaped orphans itself would steal the exit codes that asyncio and
    `subprocess.run` wait for, so a separate process does it. Call this before any thread or event
    loop exists.
    """
    if os.getpid() != 1:
        return
    signals = signal.valid_signals() - _FAULTS
    # Blocked before the fork: a signal that arrives in between waits for the init.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if (command := os.fork()) == 0:
        _take_terminal()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    code = _forward_signals(command, signals)
    _terminate_orphans()
    os._exit(code)


def _take_terminal() -> None:
    """Receive Ctrl-C alone: the init would forward it a second time."""
    os.setpgid(0, 0)
    with suppress(OSError):  # no terminal
        os.tcsetpgrp(0, os.getpgrp())


def _forward_signals(command: int, signals: "set[signal.Signals]") -> int:
    """Forward signals and reap until the command has ended; return its exit code."""
    while True:
        number = signal.sigwait(signals)
        if number == signal.SIGCHLD:
            if (status := _reap().get(command)) is not None:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif number not in _NOT_FORWARDED:
            os.kill(command, number)  # not reaped yet, so the pid cannot have been reused


def _reap() -> dict[int, int]:
    """Reap every child that has ended and return their wait statuses."""
    ended = {}
    with suppress(ChildProcessError):  # none is left
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


def _terminate_orphans() -> None:
    """Send SIGTERM to all other processes; the kernel kills the rest when PID 1 exits."""
    deadline = time.monotonic() + ORPHAN_TIMEOUT
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGTERM)
    while _has_children() and (left := deadline - time.monotonic()) > 0:
        signal.sigtimedwait({signal.SIGCHLD}, left)


def _has_children() -> bool:
    _reap()
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False
