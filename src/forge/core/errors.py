"""The one tree of errors: every error that Forge raises on purpose is a ForgeError."""

from collections.abc import Sequence


class ForgeError(Exception):
    """Something Forge refuses or cannot do; the message ends with what to do about it."""


class InvalidValue(ForgeError, ValueError):
    """A setting or an argument is not one of the values that are allowed."""


class InvalidPayload(ForgeError, ValueError):
    """A value cannot be stored as JSON; `path` says where in it the fault lies."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class ConfigError(ForgeError):
    """The configuration cannot be used; `problems` holds every fault, one line each."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class UnknownJobType(ForgeError, LookupError):
    """Nobody registered a job type of this name."""


class NotRegistered(ForgeError):
    """A job was dispatched before it was registered with an app."""


class DatabaseUnavailable(ForgeError):
    """The database does not answer; nothing was written, or it is not known whether it was."""


class StatementRefused(ForgeError):
    """The database answered, and would not do what it was asked."""


class SchemaMissing(ForgeError):
    """The database has no Forge tables, or older ones than this version needs."""


class StaleAttempt(ForgeError):
    """This attempt no longer owns its job: it was cancelled, or rescued and given to another."""


class JobFailed(ForgeError):
    """The job whose result was awaited ended without one."""


class ResultTimeout(ForgeError, TimeoutError):
    """The job was not done in the time its result was awaited."""


class Cancelled(ForgeError):
    """Raised inside a handler in a thread whose job was cancelled."""


class TimedOut(ForgeError, TimeoutError):
    """Raised inside a handler in a thread that ran longer than its timeout."""
