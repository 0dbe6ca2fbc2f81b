"""All settings with their defaults; None means off."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BeforeValidator, PrivateAttr, ValidationInfo, field_validator

from forge.config.server import AuthConfig, DashboardConfig, ServerConfig
from forge.config.sources import FILE_NAME, Section, read_settings, settings_from
from forge.config.transport import TransportConfig
from forge.config.values import (
    DatabaseUrl,
    Duration,
    Names,
    NonEmptyText,
    app_reference,
    database_url,
    duration,
    none_or,
    queue_names,
    size,
    whole,
    without_password,
)
from forge.core.duration import format_duration
from forge.core.errors import InvalidValue

DurationOrNever = Annotated[timedelta | None, BeforeValidator(none_or("never", duration))]
Size = Annotated[int, BeforeValidator(size)]


class DatabaseConfig(Section):
    """The database; without a url Forge starts the embedded PostgreSQL."""

    url: DatabaseUrl = None
    pool_size: Annotated[int, BeforeValidator(whole(1, 1000))] = 10
    # Whether connections go through a transaction pooler: no LISTEN, no session state.
    pooler: bool = False
    connect_timeout: Duration = timedelta(seconds=10)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, without_password(value) if name == "url" else value


class EmbeddedConfig(Section):
    """The PostgreSQL that Forge starts itself."""

    folder: Path = Path(".forge")


class WorkerConfig(Section):
    """Which jobs a worker runs, its limits and its intervals."""

    id: UUID | None = None
    capabilities: Names = ()
    queues: Annotated[tuple[str, ...] | None, BeforeValidator(queue_names)] = None
    max_concurrent: Annotated[int, BeforeValidator(whole(1, 10_000))] = 10
    poll_interval: Duration = timedelta(milliseconds=100)
    idle_poll_interval: Duration = timedelta(seconds=2)
    batch_size: Annotated[int, BeforeValidator(whole(1, 10_000))] = 10
    stale_threshold: Duration = timedelta(minutes=5)
    heartbeat_interval: Duration = timedelta(seconds=2)
    dead_after: Duration = timedelta(seconds=6)
    shutdown_grace: Duration = timedelta(seconds=30)
    crash_limit: Annotated[int, BeforeValidator(whole(1, 1000))] = 3
    # Log lines of an attempt that are stored; 0 stores none.
    log_lines: Annotated[int, BeforeValidator(whole(0, 10_000))] = 100
    # Metrics have no authentication, so they are served on loopback by default.
    metrics_host: NonEmptyText = "127.0.0.1"
    metrics_port: Annotated[int | None, BeforeValidator(none_or("off", whole(0, 65_535)))] = 9090
    processes: Annotated[int, BeforeValidator(whole(1, 256))] = 1

    @field_validator("dead_after")
    @classmethod
    def _outlasts_a_lost_heartbeat(cls, dead_after: timedelta, given: ValidationInfo) -> timedelta:
        interval = given.data.get("heartbeat_interval")
        if interval is not None and dead_after < 2 * interval:
            raise InvalidValue(
                f"({format_duration(dead_after)}) must be at least twice heartbeat_interval "
                f"({format_duration(interval)}); raise it, or lower heartbeat_interval"
            )
        return dead_after


class RetentionConfig(Section):
    """How long jobs that ended, keys, audit events and statistics are kept; None is forever."""

    completed: DurationOrNever = timedelta(days=7)
    failed: DurationOrNever = timedelta(days=30)
    idempotency_keys: DurationOrNever = timedelta(days=30)
    audit: DurationOrNever = None
    statistics: DurationOrNever = timedelta(days=30)


class PayloadConfig(Section):
    """How large inputs and outputs may be, in bytes of JSON."""

    max_input: Size = 262_144
    max_output: Size = 1_048_576


class Config(Section):
    """All settings, from forge.toml and the FORGE_* variables, which override the file."""

    app: Annotated[str | None, BeforeValidator(app_reference)] = None
    database: DatabaseConfig = DatabaseConfig()
    embedded: EmbeddedConfig = EmbeddedConfig()
    worker: WorkerConfig = WorkerConfig()
    retention: RetentionConfig = RetentionConfig()
    payload: PayloadConfig = PayloadConfig()
    server: ServerConfig = ServerConfig()
    dashboard: DashboardConfig = DashboardConfig()
    auth: AuthConfig = AuthConfig()
    transport: TransportConfig = TransportConfig()
    _file: Path | None = PrivateAttr(default=None)

    @classmethod
    def load(
        cls, path: Path | None = None, env: Mapping[str, str] = os.environ, **sections: Any
    ) -> Self:
        """Read the settings, or raise one ConfigError that lists every problem.

        Sections override the file and environment, key by key:
        `Config.load(worker={"max_concurrent": 50})`.
        """
        settings = read_settings(cls, path, env, sections)
        settings._file = Path(path or FILE_NAME).absolute()
        return settings

    @classmethod
    def from_mapping(
        cls, content: Mapping[str, Any], *, label: str, env: Mapping[str, str] = os.environ
    ) -> Self:
        """Read sections that a framework's settings contain; the environment overrides them.

        `label` names their origin in errors.
        """
        return settings_from(cls, label, content, env)

    @property
    def file(self) -> Path | None:
        """The settings file, whether it exists or not."""
        return self._file

    @property
    def job_stale_threshold(self) -> timedelta:
        """How long a job of an unknown worker has no heartbeat before it runs again."""
        queues = self.transport.queues
        return self.worker.stale_threshold if queues is None else queues.locked_timeout

    def __eq__(self, other: object) -> bool:
        """Whether the settings are the same, whatever file they come from."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__

    def to_redacted(self) -> dict[str, Any]:
        """Return the settings as plain values that are safe to print."""
        shown: dict[str, Any] = _written(self.model_dump())
        shown["database"]["url"] = without_password(self.database.url)
        shown["server"]["database_url"] = without_password(self.server.database_url)
        for section in (shown["auth"], shown["auth"]["jwt"] or {}):
            if section.get("secret") is not None:
                section["secret"] = "***"
        return shown


def given_or_loaded(config: Config | None) -> Config:
    """Return the settings passed to an app, or load them from file and environment."""
    if config is None:
        return Config.load()
    if not isinstance(config, Config):
        raise InvalidValue(
            "Forge(…) expects a forge.Config; for a database write Forge(database_url=…), for a "
            "file Forge.from_file(…)"
        )
    return config


def given_url(url: str | None) -> str | None:
    """Return the URL passed to an app; an empty one counts as None."""
    try:
        return database_url(url) if url else None
    except InvalidValue as error:
        raise InvalidValue(f"database_url {error}") from None


def _written(value: Any) -> Any:
    match value:
        case dict():
            return {key: _written(inner) for key, inner in value.items()}
        case tuple():
            return [_written(inner) for inner in value]
        case timedelta():
            return format_duration(value)
        case datetime():
            return value.isoformat()
        case UUID() | Path():
            return str(value)
    return value
