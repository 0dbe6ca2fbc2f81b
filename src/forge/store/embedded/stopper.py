"""The stopper process: waits until a server has no users left, then stops it.

It runs as a script, `stopper.py HOME LOCK`, without site-packages, so that it is small and starts
quickly; for that reason this file imports nothing from Forge.
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
POLL_INTERVAL = 0.02


def stop_when_unused(home: str, stopper_lock: int) -> None:
    """Wait for the users' lock and stop the server; new users wait until it has stopped."""
    users_path = os.path.join(home, "users.lock")
    users = os.open(users_path, os.O_RDWR)
    running = os.open(os.path.join(home, "running.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_EX)
    # The folder may have been deleted and created again: that server has its own stopper.
    if _is_same_file(users, users_path):
        stop_server(os.path.join(home, "data"), running, FAST)
    # In this order, so that the next user sees that the stopper has gone.
    os.close(stopper_lock)
    os.close(users)


def stop_server(data: str, running: int, steps: tuple[Step, ...]) -> bool:
    """Send the server stronger and stronger signals until no process of it is left."""
    for signum, timeout in steps:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if _is_free(running):
                return True
            # Repeatedly: the server may have been starting when it got the first signal.
            if pid := postmaster_pid(data):
                _send(pid, signum)
            else:
                for orphan in orphans(data):
                    _send(orphan, signal.SIGKILL if signum == signal.SIGKILL else signal.SIGQUIT)
            time.sleep(POLL_INTERVAL)
    return _is_free(running)


def postmaster_pid(data: str) -> int | None:
    """Return the process in `postmaster.pid`, if it is running and serves this data folder."""
    try:
        with open(os.path.join(data, "postmaster.pid")) as file:
            pid = int(file.readline())
    except (OSError, ValueError):
        return None
    return pid if pid > 0 and _serves(pid, data) else None


def orphans(data: str) -> list[int]:
    """Return the processes of the server on this data folder, if their postmaster has died."""
    if not os.path.isdir("/proc/self"):
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _serves(name, data)]


def cluster_name(data: str) -> str:
    """Return the name of the server on this folder, which is part of its processes' titles."""
    digest = hashlib.blake2b(os.fsencode(os.path.realpath(data)), digest_size=6)
    return f"forge-{digest.hexdigest()}"


def _serves(pid: int | str, data: str) -> bool:
    # After a power failure the pid may belong to any other process. The title is readable even
    # where the process's working directory is not, such as for root in a container.
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
    stop_when_unused(sys.argv[1], int(sys.argv[2]))
