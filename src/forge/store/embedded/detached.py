"""Starting processes that outlive the one that starts them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def spawn_detached(command: Sequence[str | Path], *, lock: int, log: Path) -> None:
    """Start a process in a session of its own, and hand it the lock.

    The shell in between leaves at once: Ctrl-C in the terminal does not reach the process, and the
    caller gets no child that it would have to wait for.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with os.fdopen(os.open(log, flags, 0o600), "ab") as output:
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            start_new_session=True,
            cwd="/",
            env=server_environment(),
            check=True,
        )


def server_environment() -> dict[str, str]:
    """The environment without PG* variables, which are meant for clients of some other server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {
        "LC_ALL": "C"
    }
