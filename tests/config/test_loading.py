"""Settings come from the file and the variables only."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import ValidationError

from forge.config.settings import Config
from tests.config.settings import EVERYTHING


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    config = Config.load(env={})

    assert config == Config()
    assert config.to_redacted() == {
        "app": None,
        "database": {"url": None, "pool_size": 10, "pooler": False, "connect_timeout": "10s"},
        "embedded": {"folder": ".forge"},
        "worker": {
            "id": None,
            "capabilities": [],
            "queues": None,
            "max_concurrent": 10,
            "poll_interval": "100ms",
            "idle_poll_interval": "2s",
            "batch_size": 10,
            "stale_threshold": "5m",
            "heartbeat_interval": "2s",
            "dead_after": "6s",
            "shutdown_grace": "30s",
            "crash_limit": 3,
            "metrics_host": "127.0.0.1",
            "metrics_port": 9090,
            "processes": 1,
            "log_lines": 100,
        },
        "retention": {
            "completed": "7d",
            "failed": "30d",
            "idempotency_keys": "30d",
            "audit": None,
            "statistics": "30d",
        },
        "payload": {"max_input": 262144, "max_output": 1048576},
        "server": {
            "host": "127.0.0.1",
            "port": 8080,
            "database_url": None,
            "max_body": None,
            "allowed_origins": [],
            "priorities": "type",
            "max_pending_per_tenant": None,
            "read_only": False,
            "header_timeout": "10s",
            "body_timeout": "30s",
            "idle_timeout": "75s",
            "send_timeout": "1m",
            "max_header_bytes": 65536,
            "max_connections": None,
        },
        "dashboard": {"enabled": True, "label": None, "trace_url": None},
        "auth": {"secret": None, "tokens": [], "jwt": None, "reload_grace": "1m"},
        "transport": {"kind": "postgres", "sqs": None},
    }


def test_every_setting_can_be_given_in_the_file(file: Path) -> None:
    file.write_text(EVERYTHING)

    config = Config.load(file, env={})

    assert config.app == "shop.jobs:app"
    assert config.database.url == "postgresql://forge@localhost/shop"
    assert config.database.pooler is True
    assert config.database.connect_timeout == timedelta(seconds=3)
    assert config.embedded.folder == Path("var/postgres")
    assert config.worker.id == UUID(int=7)
    assert config.worker.capabilities == ("gpu", "media")
    assert config.worker.queues == ("mail",)
    assert config.worker.metrics_port == 0
    assert config.retention.failed is None
    assert config.retention.audit == timedelta(days=365)
    assert config.payload.max_input == 65_536
    untouched = [
        (section, key)
        for section, settings in Config()
        if section != "app"
        for key, default in settings
        if getattr(getattr(config, section), key) == default
    ]
    assert untouched == []


def test_a_file_in_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forge.toml").write_text("[worker]\nprocesses = 2")
    monkeypatch.chdir(tmp_path)

    assert Config.load(env={}).worker.processes == 2


def test_every_setting_can_be_given_as_a_variable_which_overrides_the_file(file: Path) -> None:
    file.write_text('app = "other:app"\n[worker]\nmax_concurrent = 1\nprocesses = 3')

    config = Config.load(
        file,
        {
            "FORGE_APP": "shop.jobs:app",
            "FORGE_DATABASE_URL": "postgres://localhost/x",
            "FORGE_DATABASE_POOLER": "true",
            "FORGE_EMBEDDED_FOLDER": "pg",
            "FORGE_WORKER_ID": str(UUID(int=7)),
            "FORGE_WORKER_CAPABILITIES": "gpu, media",
            "FORGE_WORKER_QUEUES": "mail",
            "FORGE_WORKER_MAX_CONCURRENT": "25",
            "FORGE_WORKER_POLL_INTERVAL": "1s",
            "FORGE_WORKER_METRICS_PORT": "off",
            "FORGE_RETENTION_COMPLETED": "never",
            "FORGE_PAYLOAD_MAX_OUTPUT": "2MB",
        },
    )

    assert config.app == "shop.jobs:app"
    assert config.database.url == "postgres://localhost/x"
    assert config.database.pooler is True
    assert config.embedded.folder == Path("pg")
    assert config.worker.id == UUID(int=7)
    assert config.worker.capabilities == ("gpu", "media")
    assert config.worker.queues == ("mail",)
    assert config.worker.max_concurrent == 25
    assert config.worker.processes == 3
    assert config.worker.poll_interval == timedelta(seconds=1)
    assert config.worker.metrics_port is None
    assert config.retention.completed is None
    assert config.payload.max_output == 2 * 1024 * 1024


def test_other_variables_are_ignored(file: Path) -> None:
    file.write_text("")

    config = Config.load(
        file,
        {
            "FORGE_TEST_DATABASE": "x",
            "FORGE_WORKERS": "3",
            "FORGE_WORKER_SERVICE_HOST": "10.0.0.7",
            "FORGE_WORKER_SERVICE_PORT_HTTP": "9090",
            "FORGE_WORKER_PORT": "tcp://10.0.0.7:9090",
            "FORGE_WORKER_PORT_9090_TCP_ADDR": "10.0.0.7",
            "FORGE_WORKER_QUEUES": "",
            "FORGE_DATABASE_URL": "",
            "FORGE_APP": "",
            "PATH": "/bin",
        },
    )

    assert config == Config()


def test_settings_cannot_be_changed() -> None:
    config = Config()

    with pytest.raises(ValidationError):
        config.worker.max_concurrent = 5  # type: ignore[misc]
    assert hash(config) == hash(Config())
