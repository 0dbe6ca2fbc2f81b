"""Forge's exceptions: every error that Forge raises on purpose is a ForgeError."""

from collections.abc import Sequence
from typing import NamedTuple, Self
from uuid import UUID


class Fault(NamedTuple):
    """What is wrong with one value, and its path."""

    path: str
    message: str


class ForgeError(Exception):
    """Base class of Forge's errors; the message ends with what to do."""


class InvalidValue(ForgeError, ValueError):
    """A setting or an argument has a value that is not allowed."""


class InvalidPayload(ForgeError, ValueError):
    """A value cannot be stored as JSON; `path` is the first problem, `faults` lists all."""

    def __init__(self, message: str, path: str = "$", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.faults = tuple(faults) or (Fault(path, message),)


class UndecodablePayload(InvalidPayload):
    """A stored payload cannot be decoded or does not fit its type; a retry would fail again.

    PostgreSQL accepts longer numbers and deeper nesting than Python.
    """


class ConfigError(ForgeError):
    """The configuration is invalid; `problems` has one line per problem."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class _Unknown(ForgeError, LookupError):
    """`summary` is the message without the advice, which is for operators."""

    def __init__(self, summary: str = "", advice: str = "") -> None:
        super().__init__(f"{summary}; {advice}" if advice else summary)
        self.summary = summary


class UnknownJobType(_Unknown):
    """No job type of this name is registered."""


class UnknownJob(_Unknown):
    """No job has this id, or it was deleted, or it belongs to another tenant."""

    @classmethod
    def of(cls, job_id: UUID | str) -> Self:
        """Return the error for this job id."""
        return cls(f"there is no job {job_id}", "it may have been deleted or pruned")


class UnknownSchedule(_Unknown):
    """No schedule has this type, key and tenant."""


class UnknownDeadLetter(_Unknown):
    """No dead letter has this id, or it belongs to another tenant."""


class UnknownPause(_Unknown):
    """No pause has this id, or this type and queue, or it has ended."""


class UnknownWorker(_Unknown):
    """No worker has this id."""


class AlreadyReviewed(ForgeError):
    """This dead letter has already been reprocessed or discarded."""


class NotRegistered(ForgeError):
    """A job was dispatched, or a mutation or action called, that is not registered with an app."""


class DatabaseUnavailable(ForgeError):
    """The database does not answer; the write did not happen, or its outcome is unknown."""


class AccessRefused(DatabaseUnavailable):
    """The database answered and rejected the login: the login or the database is wrong."""


class StatementRefused(ForgeError):
    """The database rejected a statement.

    `blames_value` says whether it would reject the same values every time.
    """

    def __init__(self, message: str = "", *, blames_value: bool = False) -> None:
        super().__init__(message)
        self.blames_value = blames_value


class GrantMissing(StatementRefused):
    """A mutation or an action used a table on which its login has no rights."""


class SchemaMissing(ForgeError):
    """The database has no Forge tables, or older ones than this version requires."""


class StaleAttempt(ForgeError):
    """This attempt no longer owns its job: it was cancelled, or rescued and claimed again."""


class JobFailed(ForgeError):
    """The awaited job ended without a result."""


class ResultTimeout(ForgeError, TimeoutError):
    """The job did not end before the timeout of the wait for its result."""


class Cancelled(ForgeError):
    """Raised inside a handler in a thread whose job was cancelled."""


class TimedOut(ForgeError, TimeoutError):
    """A handler ran longer than its timeout; raised in the handler's thread, or to its caller."""
