"""Durable background jobs for Python on PostgreSQL."""

from forge.app import Forge
from forge.config import Config
from forge.core.errors import (
    Cancelled,
    ConfigError,
    DatabaseUnavailable,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    JobFailed,
    NotRegistered,
    ResultTimeout,
    SchemaMissing,
    StaleAttempt,
    StatementRefused,
    TimedOut,
    UnknownJobType,
)
from forge.core.job import Priority
from forge.core.lifecycle import State, Status
from forge.core.record import JobRecord
from forge.core.retry import Retry
from forge.core.signals import NonRetryable, RateLimited, Retryable, Snooze, Transient
from forge.handle import JobHandle
from forge.registry import JobDefinition, job
from forge.worker.context import JobContext
from forge.worker.worker import Worker

__all__ = [
    "Cancelled",
    "Config",
    "ConfigError",
    "DatabaseUnavailable",
    "Forge",
    "ForgeError",
    "InvalidPayload",
    "InvalidValue",
    "JobContext",
    "JobDefinition",
    "JobFailed",
    "JobHandle",
    "JobRecord",
    "NonRetryable",
    "NotRegistered",
    "Priority",
    "RateLimited",
    "ResultTimeout",
    "Retry",
    "Retryable",
    "SchemaMissing",
    "Snooze",
    "StaleAttempt",
    "State",
    "StatementRefused",
    "Status",
    "TimedOut",
    "Transient",
    "UnknownJobType",
    "Worker",
    "job",
]
