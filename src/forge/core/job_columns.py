"""The columns of forge_jobs, one entry each.

Generated from this table: the column lists in the .sql files, forge_api's rights, the arguments of
forge_dispatch() and the tables of the reference. Derived from it at run time: COPY, the parameters
of the dispatch statements and the options of `forge dispatch`.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Option(NamedTuple):
    """An option of dispatch: its meaning, and where it is accepted besides Python."""

    meaning: str
    http: bool = False
    sql: bool = False
    # The help text of `forge dispatch`; None where the command has no such option.
    cli: str | None = None
    metavar: str | None = None


class Column(NamedTuple):
    """One column of forge_jobs."""

    name: str
    type: str
    meaning: str
    # What a new job has here: a value of its own, one of its type, an option of dispatch, or the
    # column's default, which only Forge changes later.
    source: Literal["job", "type", "option", "forge"] = "forge"
    option: Option | None = None
    # How far it gets: no further than the row, to the worker (claims return it: a field of Job), or
    # to the handler (JobContext has an attribute of its name).
    reaches: Literal["row", "worker", "handler"] = "row"
    # Whether a job that reprocesses a dead letter has the value of the failed one.
    is_copied: bool = False
    # Whether jobs/dispatch_each writes it. A job with an option that it does not write is inserted
    # by a statement of its own.
    is_batched: bool = False
    # What COPY leaves out, because the table has the same default.
    default: object = None

    @property
    def is_shared(self) -> bool:
        """Whether it is the same for all jobs of one dispatch: a field of NewJob."""
        return self.source in ("type", "option")

    @property
    def is_claimed(self) -> bool:
        """Whether claims return it."""
        return self.reaches != "row"

    @property
    def is_granted(self) -> bool:
        """Whether forge_api can insert it."""
        return self.source != "forge" or self.is_copied


# In the order of the table: a new column comes last.
JOB_COLUMNS = (
    Column("id", "uuid", "UUIDv7: sorts by creation time", "job", reaches="worker"),
    Column("lease", "bigint", "grows by one at every claim and never shrinks", reaches="handler"),
    Column("version", "bigint", "grows by one at every change of the row"),
    Column("status", "varchar(32)", "its place in the [lifecycle](lifecycle.md)"),
    Column("worker_id", "uuid", "the worker that claimed it last"),
    Column("attempts", "integer", "how many attempts it has had", reaches="worker"),
    Column(
        "max_attempts",
        "integer",
        "how many attempts it can have",
        "type",
        reaches="handler",
        is_batched=True,
        default=3,
    ),
    Column(
        "priority",
        "integer",
        "100, 75, 50, 25 or 0",
        "option",
        Option(
            "instead of the type's own",
            http=True,
            sql=True,
            cli="critical, high, normal, low or background.",
        ),
        reaches="worker",
        is_batched=True,
        default=50,
    ),
    Column(
        "crashes",
        "integer",
        "how many of its attempts [Forge ended](../why/delivery.md#whose-fault-was-it): its worker "
        "stopped or died, or the connection to the database was lost",
        reaches="handler",
    ),
    Column(
        "scheduled_at",
        "timestamptz",
        "it does not start before this time",
        "option",
        Option(
            "not before this time; a `datetime` with a time zone",
            http=True,
            sql=True,
            cli="When to run it.",
        ),
        reaches="worker",
        is_batched=True,
    ),
    Column("created_at", "timestamptz", "when it was dispatched"),
    Column(
        "lone_crashes",
        "integer",
        "how many times its process died while it ran alone",
        reaches="worker",
    ),
    Column("progress_percent", "integer", "the progress that the handler reported last"),
    Column(
        "suspect",
        "boolean",
        "whether a worker died while it ran, so that it now [runs alone](../why/poison-pills.md)",
        reaches="worker",
    ),
    Column(
        "job_type", "varchar(255)", "which function", "type", reaches="handler", is_batched=True
    ),
    Column(
        "queue",
        "varchar(255)",
        "only workers that serve this queue claim it",
        "option",
        Option(
            "instead of the type's own",
            http=True,
            sql=True,
            cli="Where it waits, if not in the queue of its type.",
        ),
        reaches="worker",
        is_batched=True,
        default="default",
    ),
    Column(
        "worker_capability",
        "varchar(255)",
        "only workers with this capability claim it",
        "type",
        reaches="worker",
        is_batched=True,
    ),
    Column("input", "jsonb", "what the handler receives", "job", reaches="worker"),
    Column("output", "jsonb", "what the handler returned"),
    Column("progress_message", "text", "the message that the handler reported last"),
    Column(
        "last_error",
        "text",
        "the first 500 characters of its last error; `forge_attempts` has all of it",
    ),
    Column(
        "error_class",
        "varchar(32)",
        "`transient`, `retryable`, `rate_limited`, `non_retryable` or null; of its last failure, "
        "null once it has completed",
    ),
    Column(
        "idempotency_key",
        "varchar(255)",
        "its key, if it has one",
        "job",
        Option(
            "dispatch once per key and tenant; not for `dispatch_many`, whose type makes the keys",
            http=True,
            sql=True,
            cli="Dispatch once per key.",
            metavar="KEY",
        ),
    ),
    Column("claimed_at", "timestamptz", "when a worker claimed it last"),
    Column("started_at", "timestamptz", "when its last attempt started"),
    Column("completed_at", "timestamptz", "when it completed; a final job has one time of its end"),
    Column("failed_at", "timestamptz", "when it failed for good, or became a dead letter"),
    Column("cancelled_at", "timestamptz", "when it was cancelled"),
    Column("last_heartbeat", "timestamptz", "the last heartbeat of its handler"),
    Column(
        "expires_at",
        "timestamptz",
        "a job that has not started by then fails",
        "option",
        Option(
            "not wanted any more after this time: it then fails without running",
            http=True,
            sql=True,
            cli="When it is no longer wanted.",
        ),
        reaches="worker",
        is_batched=True,
    ),
    Column("timeout", "interval", "a timeout of its own", reaches="worker", is_copied=True),
    Column(
        "tenant_id",
        "bigint",
        "the tenant that it belongs to",
        "option",
        Option("whose it is, a 64-bit number", http=True, sql=True, cli="Whose it is."),
        reaches="handler",
        is_batched=True,
    ),
    Column(
        "category",
        "varchar(32)",
        "the category of its [payload rules](payload-rules.md)",
        "type",
        reaches="worker",
        is_batched=True,
    ),
    Column(
        "correlation_id",
        "uuid",
        "ties it to other things",
        "option",
        Option(
            "a UUID that ties it to other things",
            http=True,
            sql=True,
            cli="What ties it to other things.",
        ),
        reaches="handler",
        is_batched=True,
    ),
    Column(
        "payload_version",
        "varchar(32)",
        "the version of the shape of its input",
        "option",
        Option(
            'the version of the input\'s shape, `"1.0"` unless given here or as `payload_version` '
            "inside the input; both must agree",
            http=True,
            sql=True,
            cli="Of the input's shape.",
            metavar="VERSION",
        ),
    ),
    Column(
        "auth",
        "jsonb",
        "who dispatched it",
        "option",
        Option("who asks, as JSON; the handler finds it in `ctx.auth`", sql=True),
        reaches="handler",
        is_batched=True,
    ),
    Column(
        "traceparent",
        "varchar(255)",
        "the W3C trace context of its dispatch",
        "option",
        Option("the W3C trace context, stored with the job"),
        reaches="handler",
        is_copied=True,
        is_batched=True,
    ),
    Column(
        "retry_of",
        "uuid",
        "the job that this one does again",
        "option",
        Option("the job that this one does again"),
    ),
    Column(
        "parent_id",
        "uuid",
        "the job that dispatched this one",
        "option",
        Option(
            "the job that dispatched this one; in a handler it is the handler's own job, unless "
            "this option is given (`None` for none)"
        ),
        is_batched=True,
    ),
    Column(
        "tags",
        "text[]",
        "texts that the dispatcher chose",
        "option",
        Option("a list of texts", http=True, sql=True, cli="May be repeated."),
        is_copied=True,
    ),
    Column(
        "meta",
        "jsonb",
        "anything else that the dispatcher said",
        "option",
        Option("anything else, as JSON", sql=True),
    ),
    Column("checkpoint", "jsonb", "what the next attempt resumes from", reaches="handler"),
    Column(
        "original_scheduled_at",
        "timestamptz",
        "the time it was dispatched for, once a retry or a request has moved `scheduled_at`; null "
        "before",
    ),
)
COLUMNS: Mapping[str, Column] = {column.name: column for column in JOB_COLUMNS}

# `delay` is the one option without a column: it is added to scheduled_at.
OPTIONS: Mapping[str, Option] = {
    "delay": Option(
        "not before this long from now, by the database's clock; not together with `scheduled_at`",
        http=True,
        sql=True,
        cli='How long to wait, such as "5m".',
        metavar="DURATION",
    ),
    **{column.name: column.option for column in JOB_COLUMNS if column.option is not None},
}

# What a claim returns under another name, or computes: the SQL type stays that of the column.
CLAIMED_AS: Mapping[str, str] = {
    "attempts": "attempts as attempt",
    # A float is read several times as quickly as a time.
    "scheduled_at": "date_part('epoch', scheduled_at) as due",
    "suspect": "suspect as is_suspect",
    "expires_at": "expires_at < now() as expired",
    "job_type": "job_type as type",
}
# The columns that are the same for all jobs of a lane.
LANE = ("job_type", "queue", "worker_capability", "priority")
