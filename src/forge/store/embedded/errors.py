"""What can go wrong with the embedded server."""

from forge.core.errors import ForgeError


class EmbeddedUnavailable(ForgeError):
    """There are no PostgreSQL binaries to run."""


class WrongVersion(ForgeError):
    """The data folder was written by another major version of PostgreSQL."""


class ServerNotStarted(ForgeError):
    """The embedded server did not come up."""
