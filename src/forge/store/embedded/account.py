"""Whom the server runs as: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.store.embedded.errors import ServerNotStarted

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
    """A user, and the beginning of a command line that switches to it."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()
    sees_all: bool = False

    def own(self, folder: Path) -> None:
        """Hand a folder and all in it to this account, closed to everyone else."""
        if folder.stat().st_uid != self.uid:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)


def account_for(home: Path, data: Path, postgres: Path) -> Account:
    """Yourself; or for root, an account without rights that can reach the folder and programs."""
    owner = data.stat() if data.exists() else None
    if os.geteuid() != ROOT:
        if owner and owner.st_uid != os.geteuid():
            raise ServerNotStarted(
                f"{data} belongs to another user. "
                f"Run as that user, or move {home} away to begin with an empty database."
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
        # An interpreter, because not every system has a program that does this.
        yield Account(uid, gid, (sys.executable, "-I", "-S", "-c", SWITCH, str(uid), str(gid)))
        # Folders such as /root are closed to every other account: let the server pass through.
        # Containers often have the second capability only.
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
        # PostgreSQL asks access(2) about its own program, which forgets capabilities without this.
        "--securebits=+no_setuid_fixup",
    )


def _reaches(account: Account, home: Path, postgres: Path) -> bool:
    attempt = 'cd "$1" && exec "$2" --version'
    asked = subprocess.run(
        [*account.prefix, "/bin/sh", "-c", attempt, "sh", home, postgres],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        check=False,
    )
    return asked.returncode == 0


def is_private(folder: Path, uid: int) -> bool:
    """Whether a folder is a real one, belongs to the user, and lets nobody else write in it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o022
