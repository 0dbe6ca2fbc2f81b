from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import ValidationError

from forge.config import Config
from forge.core.errors import ConfigError, ForgeError

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

[retention]
completed = "1d"
failed = "never"
idempotency_keys = "90d"
audit = "365d"

[payload]
max_input = "64KB"
max_output = 2097152

[server]
host = "0.0.0.0"
port = 0
database_url = "postgresql://forge_api:hush@localhost/shop"
max_body = "2MB"
allowed_origins = ["https://shop.example"]

[auth]
secret = "a secret that has more than 32 characters"

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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "forge.toml"


def problems(path: Path | None = None, env: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        Config.load(path, env or {})
    return refused.value.problems


def problem_with(file: Path, text: str) -> str:
    file.write_text(text)
    [problem] = problems(file)
    return problem.removeprefix(f"{file}: ")


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
        },
        "retention": {
            "completed": "7d",
            "failed": "30d",
            "idempotency_keys": "30d",
            "audit": None,
        },
        "payload": {"max_input": 262144, "max_output": 1048576},
        "server": {
            "host": "127.0.0.1",
            "port": 8080,
            "database_url": None,
            "max_body": None,
            "allowed_origins": [],
        },
        "auth": {"secret": None, "tokens": [], "jwt": None},
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


def test_an_unknown_key_is_refused_with_the_nearest_one(file: Path) -> None:
    file.write_text("[worker]\nmax_concurent = 5")

    assert problems(file) == (
        f"{file}: [worker] max_concurent is not a setting; did you mean max_concurrent?",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[workr]\nid = 1", "[workr] is not a section; did you mean [worker]?"),
        (
            "[zzz]\nid = 1",
            "[zzz] is not a section; "
            "use one of [database], [embedded], [worker], [retention], [payload], "
            "[server], [auth], [transport]",
        ),
        ("ap = 'a:b'", "ap is not a setting; did you mean app?"),
        ("zzz = 1", "zzz is not a setting; the top level takes app"),
        (
            "max_concurrent = 5",
            "max_concurrent is not a setting here; move it below [worker]",
        ),
        (
            "[payload]\nzzz = 1",
            "[payload] zzz is not a setting; [payload] takes max_input, max_output",
        ),
        ("worker = 5", "worker must be a section, written [worker]"),
        ("[[worker]]\nid = 1", "worker must be a section, written [worker]"),
    ],
)
def test_what_is_not_a_setting_is_refused_with_what_is(file: Path, text: str, problem: str) -> None:
    assert problem_with(file, text) == problem


@pytest.mark.parametrize(
    ("section", "key", "value", "allowed"),
    [
        ("database", "url", '"mysql://h/db"', "a URL such as postgresql://"),
        ("database", "url", '"postgresql+asyncpg://h/db"', "a URL such as postgresql://"),
        ("database", "url", '"postgresql://h/db\\n"', "a URL such as postgresql://"),
        ("database", "pool_size", "0", "a whole number from 1 to 1000, not 0"),
        ("database", "pool_size", "1001", "a whole number from 1 to 1000, not 1001"),
        ("database", "pool_size", "true", "a whole number from 1 to 1000, not True"),
        ("database", "pool_size", "2.0", "a whole number from 1 to 1000, not 2.0"),
        ("database", "pooler", '"perhaps"', "must be a valid boolean"),
        ("database", "connect_timeout", "10", "value 10 is not a duration; write a whole number"),
        ("worker", "id", '"seven"', "must be a valid UUID"),
        ("worker", "queues", "[]", "must name a queue; leave it out to serve all queues"),
        ("worker", "queues", "[1]", 'must be a list of names, such as ["mail", "reports"]'),
        ("worker", "capabilities", '["a", " "]', "must be a list of names"),
        ("worker", "capabilities", "5", "must be a list of names"),
        ("worker", "poll_interval", '"0s"', "value must be more than zero"),
        ("worker", "metrics_port", "65536", 'from 0 to 65535, not 65536; "off" is allowed too'),
        ("retention", "audit", '"soon"', '"never" is allowed too'),
        ("retention", "audit", '"0s"', "must be more than zero"),
        ("payload", "max_input", '"256 TB"', 'such as 262144, "256KB" or "1MB"'),
        ("payload", "max_input", "1023", "must be a size from 1KB to 255MB"),
        ("payload", "max_output", "true", "must be a size"),
        ("payload", "max_output", '"256MB"', "must be a size"),
    ],
)
def test_a_bad_value_is_refused_with_its_key_and_what_is_allowed(
    file: Path, section: str, key: str, value: str, allowed: str
) -> None:
    problem = problem_with(file, f"[{section}]\n{key} = {value}")

    assert problem.startswith(f"[{section}] {key} ")
    assert allowed in problem


@pytest.mark.parametrize("app", ["jobs", "jobs:", ":app", "shop/jobs.py:app", "a:b:c", "1a:b"])
def test_an_app_must_be_a_module_and_a_name(file: Path, app: str) -> None:
    assert 'app must be "module:app"' in problem_with(file, f'app = "{app}"')


def test_a_worker_is_dead_after_two_lost_heartbeats_at_the_earliest(file: Path) -> None:
    file.write_text('[worker]\nheartbeat_interval = "3s"')
    assert Config.load(file, {}).worker.dead_after == timedelta(seconds=6)

    problem = problem_with(file, '[worker]\nheartbeat_interval = "4s"')

    assert problem == (
        "[worker] dead_after (6s) must be at least twice heartbeat_interval (4s); "
        "raise the one or lower the other"
    )
    assert "dead_after (3s)" in problem_with(file, '[worker]\ndead_after = "3s"')


def test_all_problems_are_told_at_once_and_where_each_came_from(file: Path) -> None:
    file.write_text("[worker]\nid = 7\nprocesses = 0\nmax_concurent = 5\n[databse]\n")
    env = {
        "FORGE_WORKER_BATCH_SIZE": "many",
        "FORGE_WORKER_HEARTBEAT_INTERVAL": "1h",
        "FORGE_PAYLOAD_MAX_INPUTS": "1",
    }

    found = problems(file, env)

    assert sorted(problem.split(" ")[0] for problem in found) == sorted(
        [f"{file}:"] * 4
        + ["FORGE_WORKER_BATCH_SIZE:", "FORGE_WORKER_HEARTBEAT_INTERVAL:"]
        + ["FORGE_PAYLOAD_MAX_INPUTS"]
    )
    assert (
        "FORGE_PAYLOAD_MAX_INPUTS is not a setting; did you mean FORGE_PAYLOAD_MAX_INPUT?"
    ) in found
    with pytest.raises(ForgeError) as refused:
        Config.load(file, env)
    assert str(refused.value).splitlines() == list(found)


def test_other_variables_are_left_alone(file: Path) -> None:
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


def test_a_file_that_was_asked_for_must_exist(file: Path) -> None:
    assert problems(file) == (f"{file}: there is no such file; create it or correct the path",)


def test_a_file_that_cannot_be_read_is_told(file: Path) -> None:
    assert "not valid TOML" in problem_with(file, "[worker\n")

    file.write_bytes(b"app = '\xff'")
    assert problems(file) == (f"{file}: is not UTF-8 text; save it as UTF-8",)

    assert "cannot be read (Is a directory)" in problems(file.parent)[0]


def test_settings_cannot_be_changed() -> None:
    config = Config()

    with pytest.raises(ValidationError):
        config.worker.max_concurrent = 5  # type: ignore[misc]
    assert hash(config) == hash(Config())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hush@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:hu:sh@h1:1,h2:2/db", "postgresql://u:***@h1:1,h2:2/db"),
        ("postgresql://u:hu/s?h#@x@h/db", "postgresql://u:***@h/db"),
        ("postgresql://:hush@h/db", "postgresql://:***@h/db"),
        ("postgresql://h/db?password=hush&a=b", "postgresql://h/db?password=***&a=b"),
        ("postgresql://h:1/db?user=u&password=hu@sh", "postgresql://h:1/db?user=u&password=***"),
        ("postgresql://h/db?sslpassword=hush", "postgresql://h/db?sslpassword=***"),
        ("postgresql://h/db?pass%77ord=hush", "postgresql://h/db?pass%77ord=***"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    config = Config.load(env={"FORGE_DATABASE_URL": url})

    assert config.database.url == url
    assert config.to_redacted()["database"]["url"] == shown
    for written in (repr(config), str(config), repr(config.database), f"{config.database}"):
        assert shown in written
        assert "hush" not in written


def test_secrets_are_never_shown(file: Path) -> None:
    file.write_text(EVERYTHING)

    config = Config.load(file, env={})

    for written in (str(config.to_redacted()), repr(config), repr(config.auth), str(config.server)):
        assert "secret that has" not in written
        assert "another secret" not in written
        assert "hush" not in written
    assert config.to_redacted()["auth"]["secret"] == "***"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[auth]\nsecret = 'short'", "[auth] secret must have 32 characters or more"),
        (
            "[[auth.tokens]]\nname = 'a'\nsha256 = 'hush'\nroles = ['user']",
            "[[auth.tokens]] number 1 sha256 must be the 64 hex digits",
        ),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'\nroles = ['boss']",
            "[[auth.tokens]] number 1 roles must be 'user', 'staff' or 'manager'",
        ),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'\nroles = []",
            "[[auth.tokens]] number 1 roles must have a role",
        ),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'",
            "[[auth.tokens]] number 1 roles is missing",
        ),
        (
            f"[auth.jwt]\nalgorithm = 'HS256'\nsecret = '{'x' * 32}'\nisuer = 'me'",
            "[auth.jwt] isuer is not a setting; did you mean issuer?",
        ),
        ("[auth.jwt]\nalgorithm = 'none'", "[auth.jwt] algorithm must be 'HS256' or 'RS256'"),
        ("[auth.jwt]\nalgorithm = 'HS256'", "[auth.jwt] jwks is for RS256; HS256 needs a secret"),
        ("[auth.jwt]\nalgorithm = 'RS256'", "[auth.jwt] jwks is needed for RS256"),
    ],
)
def test_faults_in_authentication_are_named(file: Path, text: str, problem: str) -> None:
    assert problem_with(file, text).startswith(problem)
    assert "hush" not in problem_with(file, text)


def test_the_secrets_can_come_from_variables(file: Path) -> None:
    file.write_text("[auth.jwt]\nalgorithm = 'HS256'")

    auth = Config.load(
        file, env={"FORGE_AUTH_SECRET": "a" * 32, "FORGE_AUTH_JWT_SECRET": "b" * 32}
    ).auth

    assert auth.secret == "a" * 32
    assert auth.jwt is not None
    assert auth.jwt.secret == "b" * 32


def test_a_refused_url_is_not_shown_either() -> None:
    [problem] = problems(env={"FORGE_DATABASE_URL": "mysql://u:hush@h/db"})
    assert problem.startswith("FORGE_DATABASE_URL: [database] url must be")
    assert "hush" not in problem

    with pytest.raises(ValidationError) as refused:
        Config.model_validate({"database": {"url": "mysql://u:hush@h/db"}})
    assert "hush" not in str(refused.value)
