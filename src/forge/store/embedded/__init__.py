"""PostgreSQL without setup: a private server in a folder, shared by all its processes."""

from forge.store.embedded.binaries import (
    Binaries,
    EmbeddedUnavailable,
    ServerNotStarted,
    WrongVersion,
)
from forge.store.embedded.cluster import Cluster
from forge.store.embedded.shared import SharedServer, open_shared

__all__ = [
    "Binaries",
    "Cluster",
    "EmbeddedUnavailable",
    "ServerNotStarted",
    "SharedServer",
    "WrongVersion",
    "open_shared",
]
