"""What PostgreSQL's errors mean: the SQLSTATE table of connections, handlers and acks."""

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
    """What happens to an attempt when a statement of its handler fails."""

    PLATFORM = "given back"
    # On a writable server it is the handler's own READ ONLY transaction.
    PLATFORM_IF_READ_ONLY = "given back if the server is read-only, else used up"
    TRANSIENT = "used up, error class `transient`"
    HANDLER = "used up"


class Verdict(NamedTuple):
    """What one SQLSTATE, or a class of them, means."""

    meaning: str
    remedy: Remedy
    blame: Blame


# By SQLSTATE, else by its class (the first two characters), else `OTHERS`.
JUDGEMENTS: Mapping[str, Verdict] = {
    "08": Verdict("connection failure", Remedy.RECONNECT, Blame.PLATFORM),
    "21": Verdict("cardinality violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "22": Verdict("invalid data", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "23": Verdict("constraint violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "25006": Verdict("read-only transaction", Remedy.RECONNECT, Blame.PLATFORM_IF_READ_ONLY),
    "25P02": Verdict("transaction is aborted", Remedy.RECONNECT, Blame.HANDLER),
    "25P03": Verdict("idle-in-transaction timeout", Remedy.RECONNECT, Blame.HANDLER),
    "25P04": Verdict("transaction timeout", Remedy.RECONNECT, Blame.HANDLER),
    "26": Verdict("unknown prepared statement", Remedy.RECONNECT, Blame.HANDLER),
    "40": Verdict("serialization failure, deadlock", Remedy.RETRY, Blame.TRANSIENT),
    "40002": Verdict("deferred constraint violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "42883": Verdict("undefined function", Remedy.MIGRATE, Blame.HANDLER),
    "42P01": Verdict("undefined table", Remedy.MIGRATE, Blame.HANDLER),
    "42P05": Verdict("duplicate prepared statement", Remedy.RECONNECT, Blame.HANDLER),
    "44": Verdict("check option violation", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "53": Verdict("disk full, out of memory", Remedy.RETRY, Blame.PLATFORM),
    "53300": Verdict("too many connections", Remedy.RECONNECT, Blame.PLATFORM),
    "53400": Verdict("configured limit exceeded", Remedy.RETRY, Blame.HANDLER),
    "54": Verdict("program limit exceeded", Remedy.REFUSE_VALUE, Blame.HANDLER),
    "55P03": Verdict("lock not available", Remedy.RETRY, Blame.TRANSIENT),
    "57": Verdict("statement cancelled, statement timeout", Remedy.RETRY, Blame.TRANSIENT),
    "57P01": Verdict("shutdown, session terminated", Remedy.RECONNECT, Blame.PLATFORM),
    "57P02": Verdict("another session crashed", Remedy.RECONNECT, Blame.PLATFORM),
    "57P03": Verdict("server starting or stopping", Remedy.RECONNECT, Blame.PLATFORM),
    "57P04": Verdict("database dropped", Remedy.RECONNECT, Blame.PLATFORM),
    "57P05": Verdict("idle-session timeout", Remedy.RECONNECT, Blame.PLATFORM),
    "58": Verdict("system error, I/O error", Remedy.RETRY, Blame.PLATFORM),
    # A statement may name files itself: COPY, or a foreign table.
    "58P01": Verdict("undefined file", Remedy.RETRY, Blame.HANDLER),
    "58P02": Verdict("duplicate file", Remedy.RETRY, Blame.HANDLER),
    "58P03": Verdict("file name too long", Remedy.RETRY, Blame.HANDLER),
    "72": Verdict("snapshot too old", Remedy.RETRY, Blame.TRANSIENT),
    "P0": Verdict("raised by a function or trigger", Remedy.REFUSE_VALUE, Blame.HANDLER),
}
OTHERS = Verdict("anything else", Remedy.REFUSE, Blame.HANDLER)

# Login errors that a retry does not fix.
NO_ENTRY = ("28", "3D", "42501")
# Errors of a server that accepts no writes: starting or stopping, full, read-only.
REFUSALS = ("57P03", "53300", "25006")
# Conflicts with another transaction: the same transaction may succeed when it is run again.
CONFLICTS = ("40001", "40P01")


def judge(sqlstate: str) -> Verdict:
    """Return what a SQLSTATE means.

    >>> judge("53100").blame.name, judge("23505").remedy.name, judge("XX000").blame.name
    ('PLATFORM', 'REFUSE_VALUE', 'HANDLER')
    """
    return JUDGEMENTS.get(sqlstate) or JUDGEMENTS.get(sqlstate[:2]) or OTHERS


def is_locked_out(sqlstate: str) -> bool:
    """Whether a login that failed with this SQLSTATE will fail again."""
    return sqlstate.startswith(NO_ENTRY)
