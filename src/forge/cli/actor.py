"""Who gives a command, for the audit."""

import getpass
import socket


def actor() -> str:
    """Name who asks."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
