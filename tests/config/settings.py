"""A file with every setting, and helpers for errors in files."""

from pathlib import Path

import pytest

from forge.config.settings import Config
from forge.core.errors import ConfigError

EVERYTHING = """
app = "shop.jobs:app"

[database]
url = "postgresql://forge@localhost/shop"
pool_size = 20
pooler = true
connect_timeout = "3s"

[embedded]
folder = "var/postgres"

[worker]
id = "00000000-0000-0000-0000-000000000007"
capabilities = ["gpu", "media"]
queues = ["mail"]
max_concurrent = 50
poll_interval = "50ms"
idle_poll_interval = "1s"
batch_size = 100
stale_threshold = "10m"
heartbeat_interval = "1s"
dead_after = "4s"
shutdown_grace = "1m"
crash_limit = 5
metrics_host = "0.0.0.0"
metrics_port = 0
processes = 4
log_lines = 50

[retention]
completed = "1d"
failed = "never"
idempotency_keys = "90d"
audit = "365d"
statistics = "90d"

[payload]
max_input = "64KB"
max_output = 2097152

[server]
host = "0.0.0.0"
port = 0
database_url = "postgresql://forge_api:hush@localhost/shop"
max_body = "2MB"
allowed_origins = ["https://shop.example", "http://localhost:5173", "capacitor://localhost"]
priorities = "any"
max_pending_per_tenant = 1000
read_only = true
header_timeout = "5s"
body_timeout = "20s"
idle_timeout = "65s"
send_timeout = "30s"
max_header_bytes = "32KB"
max_connections = 500

[dashboard]
enabled = false
label = "staging"
trace_url = "https://traces.example/trace/{trace_id}"

[auth]
secret = "a secret that has more than 32 characters"
reload_grace = "30s"

[auth.jwt]
algorithm = "HS256"
secret = "another secret with more than 32 characters"
issuer = "https://login.example"
audience = "forge"
roles_claim = "forge_roles"
tenant_claim = "org"

[[auth.tokens]]
name = "ann"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
roles = ["user", "staff"]
tenant_id = 7

[transport]
kind = "sqs"

[transport.sqs]
queue_url = "https://sqs.eu-west-1.amazonaws.com/1/forge"

[[transport.sqs.routes]]
queue_url = "https://sqs.eu-west-1.amazonaws.com/1/forge-urgent"
priorities = ["critical"]
"""


def problems(path: Path | None = None, env: dict[str, str] | None = None) -> tuple[str, ...]:
    """Return all that is refused, of a file and of variables."""
    with pytest.raises(ConfigError) as refused:
        Config.load(path, env or {})
    return refused.value.problems


def problem_with(file: Path, text: str) -> str:
    """Return the one thing that is refused of a file with this text."""
    file.write_text(text)
    [problem] = problems(file)
    return problem.removeprefix(f"{file}: ")
