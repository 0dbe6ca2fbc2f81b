"""Unknown settings and invalid values are rejected with advice."""

from datetime import timedelta
from pathlib import Path

import pytest

from forge.config.settings import Config
from forge.core.errors import ForgeError
from tests.config.settings import problem_with, problems

HS256 = f"[auth.jwt]\nalgorithm = 'HS256'\nsecret = '{'x' * 32}'"
ANYBODY = "any_issuer = true\nany_audience = true"


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
            "[server], [dashboard], [auth], [transport]",
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
        (
            '[dashboard]\ntrace_url = "https://traces.example"',
            "[dashboard] trace_url must be a URL with {trace_id}, such as "
            "https://traces.example/trace/{trace_id}, not 'https://traces.example'",
        ),
        ("[[worker]]\nid = 1", "worker must be a section, written [worker]"),
    ],
)
def test_an_unknown_setting_is_rejected_with_a_suggestion(
    file: Path, text: str, problem: str
) -> None:
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
        ("worker", "queues", "[]", "must name a queue; omit it to serve all queues"),
        ("worker", "queues", "[1]", 'must be a list of names, such as ["mail", "reports"]'),
        ("worker", "capabilities", '["a", " "]', "must be a list of names"),
        ("worker", "capabilities", "5", "must be a list of names"),
        ("worker", "poll_interval", '"0s"', "value must be more than zero"),
        ("worker", "metrics_port", "65536", 'from 0 to 65535, not 65536; "off" is allowed too'),
        ("server", "allowed_origins", "5", 'such as ["https://shop.example"], not 5;'),
        ("server", "allowed_origins", '[""]', "must be a list of origins"),
        ("server", "allowed_origins", '["*"]', "not '*'; name each one: there are no wildcards"),
        ("server", "allowed_origins", '["https://*.shop.example"]', "there are no wildcards"),
        ("server", "allowed_origins", '["null"]', "must be a list of origins"),
        ("server", "allowed_origins", '["shop.example"]', "must be a list of origins"),
        ("server", "allowed_origins", '["https://shop.example/app"]', "must be a list of origins"),
        ("server", "allowed_origins", '["https://u@shop.example"]', "must be a list of origins"),
        ("server", "allowed_origins", '["https://shöp.example"]', "must be a list of origins"),
        ("server", "allowed_origins", '["https://a.b/"]', "browsers send as 'https://a.b'; write"),
        ("server", "allowed_origins", '["https://A.b"]', "browsers send as 'https://a.b'; write"),
        ("server", "allowed_origins", '["https://a.b:443"]', "browsers send as 'https://a.b';"),
        ("server", "allowed_origins", '["http://a.b:0443"]', "as 'http://a.b:443'; write that"),
        ("retention", "audit", '"soon"', '"never" is allowed too'),
        ("retention", "audit", '"0s"', "must be more than zero"),
        ("payload", "max_input", '"256 TB"', 'such as 262144, "256KB" or "1MB"'),
        ("payload", "max_input", "1023", "must be a size from 1KB to 255MB"),
        ("payload", "max_output", "true", "must be a size"),
        ("payload", "max_output", '"256MB"', "must be a size"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_key_and_advice(
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
        "raise it, or lower heartbeat_interval"
    )
    assert "dead_after (3s)" in problem_with(file, '[worker]\ndead_after = "3s"')


def test_all_problems_are_reported_at_once_with_their_origin(file: Path) -> None:
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


def test_a_named_file_must_exist(file: Path) -> None:
    assert problems(file) == (f"{file}: does not exist; create it or correct the path",)


def test_an_unreadable_file_is_reported(file: Path) -> None:
    assert "not valid TOML" in problem_with(file, "[worker\n")

    file.write_bytes(b"app = '\xff'")
    assert problems(file) == (f"{file}: is not UTF-8 text; save it as UTF-8",)

    assert "cannot be read (Is a directory)" in problems(file.parent)[0]


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
            "[[auth.tokens]] number 1 roles must be 'viewer', 'user', 'staff' or 'manager'",
        ),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'\nroles = []",
            "[[auth.tokens]] number 1 roles must have a role",
        ),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'",
            "[[auth.tokens]] number 1 roles is required",
        ),
        (
            f"{HS256}\nissuer = 'us'\naudience = 'we'\nisuer = 'me'",
            "[auth.jwt] isuer is not a setting; did you mean issuer?",
        ),
        (
            f"[auth.jwt]\nalgorithm = 'none'\n{ANYBODY}",
            "[auth.jwt] algorithm must be 'HS256' or 'RS256'",
        ),
        (
            f"[auth.jwt]\nalgorithm = 'HS256'\n{ANYBODY}",
            "[auth.jwt] jwks is for RS256; HS256 needs a secret",
        ),
        (
            f"[auth.jwt]\nalgorithm = 'RS256'\n{ANYBODY}",
            "[auth.jwt] jwks is required for RS256",
        ),
        (f"{HS256}\naudience = 'we'", "[auth.jwt] issuer is required, because tokens"),
        (f"{HS256}\naudience = 'we'\nissuer = ''", "[auth.jwt] issuer is required, because"),
        (f"{HS256}\nissuer = 'us'", "[auth.jwt] audience is required, because tokens"),
        (f"{HS256}\n{ANYBODY}\nissuer = 'us'", "[auth.jwt] issuer has no effect together with"),
        (
            f"[[auth.tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'\nroles = ['user']\n"
            "expires_at = 2027-01-31T12:00:00",
            "[[auth.tokens]] number 1 expires_at must be a time with an offset",
        ),
    ],
)
def test_faults_in_authentication_are_named(file: Path, text: str, problem: str) -> None:
    assert problem_with(file, text).startswith(problem)
    assert "hush" not in problem_with(file, text)
