"""The keeper: waits until the last user of a server has gone, then stops the server.

It runs as a script of its own, `keeper.py HOME LOCK`, without site-packages, so it is small and
quick to start; for that reason this file imports nothing of Forge.
"""

import contextlib
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time

Step = tuple[signal.Signals, float]
FAST: tuple[Step, ...] = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
IMMEDIATE: tuple[Step, ...] = FAST[1:]
KILL: tuple[Step, ...] = FAST[2:]
PAUSE = 0.02


def keep(home: str, keeper_lock: int) -> None:
    """Wait for the users' lock; whoever comes meanwhile waits until the server has stopped."""
    users_path = os.path.join(home, "users.lock")
    users = os.open(users_path, os.O_RDWR)
    running = os.open(os.path.join(home, "running.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_EX)
    # The folder may have been deleted and made anew: that server has a keeper of its own.
    if _is_same_file(users, users_path):
        stop_server(os.path.join(home, "data"), running, FAST)
    # In this order, so that a user who is let in sees that there is no keeper any more.
    os.close(keeper_lock)
    os.close(users)


def stop_server(data: str, running: int, steps: tuple[Step, ...]) -> bool:
    """Signal the server, ever harder, until no process of it is left."""
    for signum, patience in steps:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if _is_free(running):
                return True
            # Again and again: the server may have been about to start when the first one came.
            if pid := postmaster_pid(data):
                _send(pid, signum)
            else:
                for orphan in orphans(data):
                    _send(orphan, signal.SIGKILL if signum == signal.SIGKILL else signal.SIGQUIT)
            time.sleep(PAUSE)
    return _is_free(running)


def postmaster_pid(data: str) -> int | None:
    """The process that `postmaster.pid` names, if it lives and serves this data folder."""
    try:
        with open(os.path.join(data, "postmaster.pid")) as file:
            pid = int(file.readline())
    except (OSError, ValueError):
        return None
    return pid if pid > 0 and _serves(pid, data) else None


def orphans(data: str) -> list[int]:
    """Processes of the server on this data folder, for when their postmaster has died."""
    if not os.path.isdir("/proc/self"):
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _serves(name, data)]


def cluster_name(data: str) -> str:
    """The name of the server on this folder, which is part of its processes' titles."""
    digest = hashlib.blake2b(os.fsencode(os.path.realpath(data)), digest_size=6)
    return f"forge-{digest.hexdigest()}"


def _serves(pid: int | str, data: str) -> bool:
    # A number in a file says little: after a power cut it may belong to any other process. The
    # title can be read where the process's folder cannot, as by the root of a container.
    program, _, rest = _title(pid).partition(" ")
    is_server = os.path.basename(program).startswith("postgres")
    return is_server and (cluster_name(data) in rest or f"-D {os.path.realpath(data)} " in rest)


def _title(pid: int | str) -> str:
    if not os.path.isdir("/proc/self"):
        command = ["ps", "-p", str(pid), "-o", "command="]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    try:
        with open(f"/proc/{pid}/cmdline", errors="replace") as file:
            return file.read().replace("\0", " ")
    except OSError:
        return ""


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True


def _is_same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _send(pid: int, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


if __name__ == "__main__":
    keep(sys.argv[1], int(sys.argv[2]))
