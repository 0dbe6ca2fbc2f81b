"""Values that are redacted in output, and values that are not; neither prevents a dispatch."""

import json
import logging
from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge, JobContext
from forge.cli.output import print_json
from forge.cli.processes.serving import _hide_tokens
from forge.core.sensitive.findings import sensitive_faults
from forge.core.sensitive.redact import REDACTED, redact, redact_text, secrets_in
from forge.core.terminal_safe import terminal_safe
from forge.telemetry.logs.listener import JsonFormatter
from tests.http.conftest import MakeToken
from tests.http.job_client import dispatched

# Put together here, so that no scanner of this repository takes them for real ones.
A1 = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
KEYS = [
    f"sk-{A1}",
    f"sk-proj-{A1}",
    f"sk-ant-api03-{A1}",
    f"SG.{A1[:22]}.{A1}",
    f"npm_{A1}abcd",
    f"ya29.{A1}",
    f"https://hooks.slack.com/services/T00000000/B00000000/{A1[:24]}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={A1}==",
    f"rk_live_{A1}",
    f"whsec_{A1}",
]
NAMED: list[dict[str, Any]] = [
    {"pass": "hunter2"},
    {"smtp_pass": "c0rrect!horse"},
    {"auth": f"{A1}"},
    {"proxyAuth": ["ann", "s3cr3tPass"]},
    {"sig": "9f86d081884c7d65"},
    {"AccountKey": f"{A1}=="},
]
SHOWN: list[Any] = [
    {"auth": "oauth2", "pass": "second", "sig": "ann"},
    {"auth": "sha-256"},
    {"auth": "oauth2.0"},
    {"auth": "hmac-sha256"},
    {"auth": "service.account.v2"},
    {"auth": "https://auth.example.com/v2/start"},
    {"auth": "ann7@example.com"},
    {"auth": "0190163d-8694-739b-aea5-966c26f8ad91"},
    {"auth": {"user": 7, "scopes": ["read"]}},
    {"tests": {"pass": 12, "fail": 3}, "pass": True},
    {"auth_url": f"/login/{A1}", "pass_count": 7, "sig_id": "a1b2c3d4"},
    {"author": "Ann B. 1984", "passenger": "p4ss3nger", "signal": "SIGTERM15", "compass": "n0rth1"},
    "sk-learn-compatible-estimators-of-doom",
    "task-1234567890-ABCDEFGHIJKLMNOP",
    "SG.1 and SG.2 were moved",
    "npm_config_registry is set",
    "see https://api.slack.com/messaging/webhooks",
    "ya29 is a bus line",
    "AccountKey=none",
    "authored by Ann: pass 2 of 3, sig: none",
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_services_are_hidden_and_not_refused(key: str) -> None:
    secret = key.rpartition("AccountKey=")[2]

    for value in (key, {"note": f"used {key} today"}, [key], f"{'x ' * 800}{key} end"):
        assert secret not in json.dumps(redact(value))
    assert key in secrets_in({"note": key})
    if "=" not in key:
        assert sensitive_faults({"note": key}) == []


@pytest.mark.parametrize("payload", NAMED)
def test_a_name_that_hints_and_a_value_that_looks_secret_are_hidden_and_not_refused(
    payload: dict[str, Any],
) -> None:
    ((name, value),) = payload.items()

    assert redact(payload) == {name: REDACTED}
    assert sensitive_faults(payload) == []
    if isinstance(value, str):
        assert value not in redact_text(f"tried with {name}={value} twice")
        assert value not in redact_text(f"said {value}", secrets_in(payload))


@pytest.mark.parametrize("value", SHOWN, ids=str)
def test_values_that_are_not_secret_are_shown(value: Any) -> None:
    assert redact(value) == value


async def test_tags_and_keys_are_shown_without_secrets(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job(max_attempts=1)
    async def fail(ctx: JobContext, input: dict[str, Any]) -> None:
        raise ValueError("no")

    user = token("user", "staff", "manager", tenant=7)
    card = "order-4111111111111111"
    ids = [
        await dispatched(
            http,
            user,
            "fail",
            args={"password": "hunter22"},
            tags=["blue", "hunter22", KEYS[1]],
            idempotency_key=key,
        )
        for key in (f"send-{KEYS[2]}", "send-hunter22", card)
    ]

    jobs = [(await http.get(f"/_api/jobs/{id}", headers=user)).json() for id in ids]

    assert [job["tags"] for job in jobs] == [["blue", REDACTED, REDACTED]] * 3
    assert [job["idempotency_key"] for job in jobs] == [REDACTED, f"send-{REDACTED}", card]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/_api/live?token=abc.def", "/_api/live?token=***"),
        ("/_api/live?watch_token=abc&x=1", "/_api/live?watch_token=***&x=1"),
        ("/a?x=1&access_token=abc", "/a?x=1&access_token=***"),
        ("/a?%74oken=abc", "/a?%74oken=***"),
        ("/a?sig=9f86d081884c7d65&sv=2", "/a?sig=***&sv=2"),
        (f"/a?q={KEYS[0]}", "/a?q=***"),
        ("/a?q=two+words&limit=5", "/a?q=two+words&limit=5"),
        ("/a?cursor=AZAWPYaUc5uupZZsJvitkQ", "/a?cursor=AZAWPYaUc5uupZZsJvitkQ"),
        ("/_api/jobs/0190163d-8694-739b-aea5-966c26f8ad91", None),
    ],
)
def test_access_logs_hold_no_secret_of_an_address(path: str, shown: str | None) -> None:
    record = logging.makeLogRecord({"args": ("127.0.0.1:5000", "GET", path, "1.1", 200)})

    _hide_tokens(record)

    assert record.args == ("127.0.0.1:5000", "GET", shown or path, "1.1", 200)


@pytest.mark.parametrize("code", [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2066, 0x2069])
def test_nothing_that_turns_text_around_reaches_a_terminal(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"gpj.{chr(code)}exe"

    print_json({"file": text})
    record = logging.makeLogRecord({"msg": text, "levelname": "INFO"})
    written = [terminal_safe(text), capsys.readouterr().out, JsonFormatter().format(record)]

    assert all(chr(code) not in line for line in written)
    assert json.loads(written[1]) == {"file": text}
    assert json.loads(written[2])["message"] == text
    assert terminal_safe("naïve Ångström ☃ 日本") == "naïve Ångström ☃ 日本"


def test_ids_stay_ids() -> None:
    job = {"id": str(UUID(int=7)), "auth": str(UUID(int=9))}

    assert redact(job) == job
