"""PostgreSQL without a set-up: a private server in a folder, shared by all who open that folder."""

from forge.store.embedded.binaries import Binaries
from forge.store.embedded.cluster import Cluster
from forge.store.embedded.errors import EmbeddedUnavailable, ServerNotStarted, WrongVersion
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
