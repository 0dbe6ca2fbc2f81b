"""Kills the process groups of a worker's children once the worker is gone.

A worker that was killed cannot do it. The kernel ends the children themselves; the processes that
their handlers started are in their groups. This file runs as a script without site-packages, so it
is small and starts quickly; for that reason it imports nothing of Forge. It reads lines `+PID` and
`-PID`, which add and remove a group, until the worker's end of the pipe closes.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    # It has to outlive its worker.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
