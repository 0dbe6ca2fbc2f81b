"""The one tree of errors: every error that Forge raises on purpose is a ForgeError."""

from collections.abc import Sequence
from typing import NamedTuple, Self
from uuid import UUID


class Fault(NamedTuple):
    """What is wrong with one value, and where it lies."""

    path: str
    message: str


class ForgeError(Exception):
    """Something Forge refuses or cannot do; the message ends with what to do about it."""


class InvalidValue(ForgeError, ValueError):
    """A setting or an argument is not one of the values that are allowed."""


class InvalidPayload(ForgeError, ValueError):
    """A value cannot be stored as JSON; `path` says where, `faults` all that is wrong with it."""

    def __init__(self, message: str, path: str = "$", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.faults = tuple(faults) or (Fault(path, message),)


class UndecodablePayload(InvalidPayload):
    """A stored payload cannot be read, or does not fit its type: another attempt changes nothing.

    PostgreSQL takes longer numbers and deeper values than Python.
    """


class ConfigError(ForgeError):
    """The configuration cannot be used; `problems` holds every fault, one line each."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class _Unknown(ForgeError, LookupError):
    """`summary` is the message without the advice, which is for the operators of Forge."""

    def __init__(self, summary: str = "", advice: str = "") -> None:
        super().__init__(f"{summary}; {advice}" if advice else summary)
        self.summary = summary


class UnknownJobType(_Unknown):
    """Nobody registered a job type of this name."""


class UnknownJob(_Unknown):
    """There is no job of this id, or no more, or it is another tenant's."""

    @classmethod
    def of(cls, job_id: UUID | str) -> Self:
        """Say which one."""
        return cls(f"there is no job {job_id}", "it may have been deleted or pruned")


class UnknownSchedule(_Unknown):
    """There is no schedule of this type, key and tenant."""


class UnknownDeadLetter(_Unknown):
    """There is no dead letter of this id, or it is another tenant's."""


class AlreadyReviewed(ForgeError):
    """Somebody else has reprocessed or discarded this dead letter."""


class NotRegistered(ForgeError):
    """A job was dispatched, or a mutation or action called, that no app has registered."""


class DatabaseUnavailable(ForgeError):
    """The database does not answer; nothing was written, or it is not known whether it was."""


class AccessRefused(DatabaseUnavailable):
    """The database is there and does not let Forge in: the login, or the database, is wrong."""


class StatementRefused(ForgeError):
    """The database answered, and would not do what it was asked.

    `blames_value` says whether it would refuse the same values for ever.
    """

    def __init__(self, message: str = "", *, blames_value: bool = False) -> None:
        super().__init__(message)
        self.blames_value = blames_value


class GrantMissing(StatementRefused):
    """A mutation or an action used a table that the login of its process has no rights on."""


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
    """A handler ran longer than its timeout: raised inside it in a thread, or to who called it."""
