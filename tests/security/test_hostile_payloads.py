"""Checks and redaction of hostile payloads do work that grows with the payload, not faster."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from forge import Forge
from forge.core.sensitive import names
from forge.core.sensitive.findings import sensitive_faults
from forge.core.sensitive.redact import REDACTED, redact, redact_text, secrets_in
from forge.core.sensitive.shown import shown_message
from forge.http.off_loop import THREAD_THRESHOLD
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, dispatched
from tests.security.work import counted_calls
from tests.store.placing import Psql

SHAPES: dict[str, Callable[[int], Any]] = {
    "keys": lambda n: {f"key{i}": i for i in range(n)},
    "keys with secrets": lambda n: {f"k{i}_token": f"secret-{i}" for i in range(n)},
    "texts with signs": lambda n: {f"key{i}": f"x{i}: y" for i in range(n)},
    "cards": lambda n: [4111111111111111] * n,
    "one text of names": lambda n: " ".join(f"name{i}: value" for i in range(n)),
    "one text of dotted names": lambda n: "a." * n + "=",
    "one text of tokens": lambda n: "token=a " * n,
    "one text of words": lambda n: "x " * n + "AKIAABCDEFGHIJKLMNOP",
    "one text of digits": lambda n: "1 " * n,
    "deep": lambda n: json.loads("[" * 60 + "1," * n + "1" + "]" * 60),
}


def steps(act: Callable[[Any], object], value: Any) -> Counter[str]:
    names._meaning.cache_clear()
    with counted_calls() as calls:
        act(value)
    return calls


def redact_with_its_own(value: Any) -> Any:
    return redact(value, secrets_in(value))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("act", [redact, secrets_in, sensitive_faults, redact_with_its_own])
def test_work_grows_with_the_payload_and_not_faster(
    act: Callable[[Any], object], shape: str
) -> None:
    small, large = (steps(act, SHAPES[shape](n)).total() for n in (500, 4_000))

    assert large <= 10 * small + 1_000  # 64 times as much, if it grew with the square


def test_searching_for_many_secrets_in_many_texts_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forge.core.sensitive.redact.MAX_SEARCHED", 100_000)
    known = secrets_in({f"k{n}_token": f"secret-{n}" for n in range(1_000)})
    said = {str(n): f"met secret-{n}" for n in range(1_000)}

    with counted_calls("replace", "find") as calls:
        assert redact(said, known) == REDACTED
        assert redact_text("met secret-7 " * 100, known) == REDACTED

    assert calls.total() == 0
    assert redact(said, {"secret-7"})["7"] == f"met {REDACTED}"


def test_every_secret_of_many_is_found_within_the_bound() -> None:
    payload = {f"k{n}_token": f"secret-{n:03}" for n in range(500)}
    said = {str(n): [f"met secret-{n:03}", n] for n in range(500)}

    shown = redact(said, secrets_in(payload))

    assert shown == {str(n): [f"met {REDACTED}", n] for n in range(500)}


def test_the_end_of_a_text_is_searched_once_for_all_secrets() -> None:
    """A secret of 200 kB was compared with the end of a text at every length that it has."""
    secret = "ab" * 100_000
    cut = "x" * 600 + secret[:700]

    with counted_calls() as calls:
        shown = shown_message(cut, {"password": secret})

    assert shown == "x" * 600 + REDACTED
    assert calls.total() < 2_000


def test_a_long_secret_that_was_cut_is_not_shown() -> None:
    secret = "".join(f"{n:05}" for n in range(2_000))

    assert shown_message("x" * 600 + secret[:3_000], {"password": secret}) == "x" * 600 + REDACTED


def test_names_are_remembered_by_their_first_characters() -> None:
    """Ten thousand names of 200 kB each would fill the memory of a server."""
    names._meaning.cache_clear()
    long = "password" + "x" * 200_000

    for n in range(3):
        assert redact({f"{long}{n}": "hunter2"}) == {f"{long}{n}": REDACTED}

    assert names._meaning.cache_info().currsize == 1


async def test_sql_looks_at_each_name_and_each_text_once(psql: "Psql[Any]") -> None:
    await psql.execute("set track_functions = 'all'")
    payload = {f"key{n}": f"value{n}" for n in range(1_000)}

    async with psql.transaction():
        await psql.execute(
            "select forge_check_sensitive($1::text::jsonb, '{}')", json.dumps(payload)
        )
        rows = await psql.fetch("select funcname, calls from pg_stat_xact_user_functions")

    calls = {row["funcname"]: row["calls"] for row in rows}
    assert calls["forge_looks_like"] == 2 * len(payload)
    assert calls.get("forge_words", 0) == calls.get("forge_is_secret", 0) == 0


@pytest.mark.parametrize("is_large", [False, True])
async def test_large_payloads_are_checked_and_redacted_beside_the_event_loop(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, *, is_large: bool
) -> None:
    add_jobs(app)
    inputs = [{"note": "x: y " * (THREAD_THRESHOLD if is_large else 1)}]
    headers = token("staff", "user")
    at = "/_api/jobs/send_mail"
    requests: dict[str, Callable[[], Awaitable[httpx.Response]]] = {
        "one": lambda: http.post(f"{at}/dispatch", json={"args": inputs[0]}, headers=headers),
        "many": lambda: http.post(f"{at}/dispatch_many", json={"inputs": inputs}, headers=headers),
        "list": lambda: http.get("/_api/jobs", headers=headers),
        "search": lambda: http.get("/_api/jobs?q=nothing", headers=headers),
        "job": lambda: http.get(f"/_api/jobs/{job}", headers=headers),
    }
    job = await dispatched(http, headers, args=inputs[0])

    on_the_loop = {}
    for name, ask in requests.items():
        with counted_calls("sensitive_faults", "shown_job", threads=False) as calls:
            answer = await ask()
        assert answer.is_success, answer.text
        on_the_loop[name] = bool(calls)

    assert on_the_loop == dict.fromkeys(requests, not is_large)
