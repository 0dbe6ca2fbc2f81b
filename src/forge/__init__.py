"""Durable background jobs for Python on PostgreSQL."""

from forge.app import Forge
from forge.calls.context import ActionContext, MutationContext
from forge.config.settings import Config
from forge.core.context import Auth
from forge.core.dead_letter import DeadLetter, DeadLetterGroup
from forge.core.errors import (
    AccessRefused,
    AlreadyReviewed,
    Cancelled,
    ConfigError,
    DatabaseUnavailable,
    ForgeError,
    GrantMissing,
    InvalidPayload,
    InvalidValue,
    JobFailed,
    NotRegistered,
    ResultTimeout,
    SchemaMissing,
    StaleAttempt,
    StatementRefused,
    TimedOut,
    UndecodablePayload,
    UnknownDeadLetter,
    UnknownJob,
    UnknownJobType,
    UnknownPause,
    UnknownSchedule,
    UnknownWorker,
)
from forge.core.job import JobRecord, Priority
from forge.core.lifecycle import State, Status
from forge.core.pause import Pause
from forge.core.payload_rules import PayloadValidator
from forge.core.retry import Retry
from forge.core.schedules.record import ScheduleRecord
from forge.core.signals import NonRetryable, RateLimited, Rejected, Retryable, Snooze, Transient
from forge.core.worker_record import WorkerRecord
from forge.definitions.call import ActionDefinition, MutationDefinition, action, mutation
from forge.definitions.job import JobDefinition, job
from forge.definitions.schedule import ScheduleDefinition, cron, schedule
from forge.jobs.context import JobContext
from forge.jobs.handle import JobHandle
from forge.worker.handlers.schedule_context import ScheduleContext
from forge.worker.worker import Worker

__all__ = [
    "AccessRefused",
    "ActionContext",
    "ActionDefinition",
    "AlreadyReviewed",
    "Auth",
    "Cancelled",
    "Config",
    "ConfigError",
    "DatabaseUnavailable",
    "DeadLetter",
    "DeadLetterGroup",
    "Forge",
    "ForgeError",
    "GrantMissing",
    "InvalidPayload",
    "InvalidValue",
    "JobContext",
    "JobDefinition",
    "JobFailed",
    "JobHandle",
    "JobRecord",
    "MutationContext",
    "MutationDefinition",
    "NonRetryable",
    "NotRegistered",
    "Pause",
    "PayloadValidator",
    "Priority",
    "RateLimited",
    "Rejected",
    "ResultTimeout",
    "Retry",
    "Retryable",
    "ScheduleContext",
    "ScheduleDefinition",
    "ScheduleRecord",
    "SchemaMissing",
    "Snooze",
    "StaleAttempt",
    "State",
    "StatementRefused",
    "Status",
    "TimedOut",
    "Transient",
    "UndecodablePayload",
    "UnknownDeadLetter",
    "UnknownJob",
    "UnknownJobType",
    "UnknownPause",
    "UnknownSchedule",
    "UnknownWorker",
    "Worker",
    "WorkerRecord",
    "action",
    "cron",
    "job",
    "mutation",
    "schedule",
]

# Traces, logs and dead letters name an error as it is imported.
for _public in [globals()[name] for name in __all__]:
    if isinstance(_public, type) and issubclass(_public, ForgeError):
        _public.__module__ = __name__
del _public
