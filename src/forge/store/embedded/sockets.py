"""The folder of the server's socket: private, and with a path that is short enough for one."""

import os
import re
import socket
import tempfile
from pathlib import Path

from forge.store.embedded.account import Account, is_private

# What macOS allows for a socket's path; Linux allows 107.
LONGEST_PATH = 103
SOCKET_PORT = 5432
LOOPBACK = "127.0.0.1"


def socket_folder(home: Path, account: Account) -> Path:
    """The folder for the socket: in `home`, or where that cannot be, in the system's temp folder.

    A link in `home` remembers the latter, so a restarted server is found where it was before.
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
    """Remove what a crashed server left: its lock file may name a process that is another now."""
    for left_over in folder.glob(".s.PGSQL.*"):
        left_over.unlink()


def free_port(wished: int | None) -> int:
    """A free TCP port: the wished one where possible, so whoever forwards to it need not care."""
    with socket.socket() as probe:
        # As the server does: connections of its predecessor may still be closing.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wished or 0))
        except OSError:
            probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _is_fit(folder: Path) -> bool:
    # Other characters mean something in a list of hosts, or in a list of folders.
    plain = re.fullmatch(r"[\w./ +-]+", str(folder), re.ASCII)
    return plain is not None and len(f"{folder}/.s.PGSQL.65535") <= LONGEST_PATH


def _make_far(account: Account) -> Path:
    # Made by us and ours: in a folder with the sticky bit nobody else can swap it for their own.
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
