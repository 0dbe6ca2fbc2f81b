"""Whose fault an error of PostgreSQL is: one table that connections, handlers and acks share."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Remedy(StrEnum):
    """What Forge does when one of its own statements fails."""

    RECONNECT = "reconnects and tries again"
    RETRY = "tries again"
    MIGRATE = "waits for `forge migrate`"
    REFUSE_VALUE = "reports that the value cannot be stored"
    REFUSE = "reports it; a worker keeps the outcome of a job and tries again"


class Blame(StrEnum):
    """What an attempt pays when a statement of its handler fails."""

    PLATFORM = "given back"
    # Elsewhere it is the handler's own READ ONLY transaction.
    PLATFORM_IF_READ_ONLY = "given back if the server is read-only, else used up"
    TRANSIENT = "used up, error class `transient`"
    HANDLER = "used up"


class Judgement(NamedTuple):
    """What one SQLSTATE, or a class of them, means."""

    meaning: str
    remedy: Remedy
    blame: Blame


# By SQLSTATE, else by its class (the first two characters), else `OTHERS`.
JUDGEMENTS: Mapping[str, Judgement] = {
    "08": Judgement("connection failure", Remedy.RECONNECT, Blame.PLATFORM),
    "21": Judgement("cardinality violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "22": Judgement("invalid data", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "23": Judgement("constraint violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "25006": Judgement("read-only transaction", Remedy.RECONNECT, Blame.PLATFORM_IF_READ_ONLY),
    "25P02": Judgement("transaction is aborted", Remedy.RECONNECT, Blame.HANDLER),
    "25P03": Judgement("idle-in-transaction timeout", Remedy.RECONNECT, Blame.HANDLER),
    "25P04": Judgement("transaction timeout", Remedy.RECONNECT, Blame.HANDLER),
    "26": Judgement("unknown prepared statement", Remedy.RECONNECT, Blame.HANDLER),
    "40": Judgement("serialization failure, deadlock", Remedy.RETRY, Blame.TRANSIENT),
    "40002": Judgement("deferred constraint violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "42883": Judgement("undefined function", Remedy.MIGRATE, Blame.HANDLER),
    "42P01": Judgement("undefined table", Remedy.MIGRATE, Blame.HANDLER),
    "42P05": Judgement("duplicate prepared statement", Remedy.RECONNECT, Blame.HANDLER),
    "44": Judgement("check option violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "53": Judgement("disk full, out of memory", Remedy.RETRY, Blame.PLATFORM),
    "53300": Judgement("too many connections", Remedy.RECONNECT, Blame.PLATFORM),
    "53400": Judgement("configured limit exceeded", Remedy.RETRY, Blame.HANDLER),
    "54": Judgement("program limit exceeded", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "55P03": Judgement("lock not available", Remedy.RETRY, Blame.TRANSIENT),
    "57": Judgement("statement cancelled, statement timeout", Remedy.RETRY, Blame.TRANSIENT),
    "57P01": Judgement("shutdown, session terminated", Remedy.RECONNECT, Blame.PLATFORM),
    "57P02": Judgement("another session crashed", Remedy.RECONNECT, Blame.PLATFORM),
    "57P03": Judgement("server starting or stopping", Remedy.RECONNECT, Blame.PLATFORM),
    "57P04": Judgement("database dropped", Remedy.RECONNECT, Blame.PLATFORM),
    "57P05": Judgement("idle-session timeout", Remedy.RECONNECT, Blame.PLATFORM),
    "58": Judgement("system error, I/O error", Remedy.RETRY, Blame.PLATFORM),
    # A statement may name files itself: COPY, or a foreign table.
    "58P01": Judgement("undefined file", Remedy.RETRY, Blame.HANDLER),
    "58P02": Judgement("duplicate file", Remedy.RETRY, Blame.HANDLER),
    "58P03": Judgement("file name too long", Remedy.RETRY, Blame.HANDLER),
    "72": Judgement("snapshot too old", Remedy.RETRY, Blame.TRANSIENT),
    "P0": Judgement("raised by a function or trigger", Remedy.REFUSE_VALUE, Blame.HANDLER),
}
OTHERS = Judgement("anything else", Remedy.REFUSE, Blame.HANDLER)

# What a server says of a login that the next try does not change.
NO_ENTRY = ("28", "3D", "42501")
# What a server says that can be written to by nobody: starting or stopping, full, read-only.
REFUSALS = ("57P03", "53300", "25006")
# What another transaction caused: the same one may well succeed when it is run again.
CONFLICTS = ("40001", "40P01")


def judge(sqlstate: str) -> Judgement:
    """Return what a SQLSTATE means.

    >>> judge("53100").blame.name, judge("23505").remedy.name, judge("XX000").blame.name
    ('PLATFORM', 'REFUSE_VALUE', 'HANDLER')
    """
    return JUDGEMENTS.get(sqlstate) or JUDGEMENTS.get(sqlstate[:2]) or OTHERS


def is_locked_out(sqlstate: str) -> bool:
    """Whether a server that answered a login so answers the next one alike."""
    return sqlstate.startswith(NO_ENTRY)
