"""Watch tokens: valid for one job, for an hour at most, and revoked with the caller's token."""

import time
from uuid import uuid4

import pytest

from forge.http.auth import watch_tokens
from forge.http.auth.access import Identity
from forge.http.auth.watch_tokens import LIFETIME, WatchTokens

SECRET = b"a secret of thirty-two characters or more"
NOW = 1_900_000_000.0
ANN = Identity("ann", frozenset(), key="static:ann")


class Clock:
    """The clock of the tokens, which stands until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watch_tokens, "time", clock)
    return clock


def tokens(secret: bytes = SECRET, *keys: str) -> WatchTokens:
    known = frozenset(keys or {"static:ann"})
    return WatchTokens(lambda: secret, lambda: known)


def test_watch_token_is_valid_for_an_hour(clock: Clock) -> None:
    job_id = uuid4()

    token, expires_at = tokens().make(job_id, ANN)

    assert expires_at == NOW + LIFETIME
    assert tokens().is_good(token, job_id)
    clock.now = NOW + LIFETIME - 1
    assert tokens().is_good(token, job_id)
    clock.now = NOW + LIFETIME
    assert not tokens().is_good(token, job_id)


def test_watch_token_expires_with_the_callers_token(clock: Clock) -> None:
    job_id = uuid4()
    short = Identity("ann", frozenset(), expires_at=NOW + 60.5, key="static:ann")

    token, expires_at = tokens().make(job_id, short)

    assert expires_at == NOW + 60
    clock.now = NOW + 60
    assert not tokens().is_good(token, job_id)


def test_watch_token_is_bound_to_job_and_secret() -> None:
    job_id = uuid4()

    token = tokens().make(job_id, ANN).text

    assert tokens().is_good(token, job_id)
    assert not tokens().is_good(token, uuid4())
    assert not tokens(b"another" + SECRET).is_good(token, job_id)


def test_watch_token_ends_when_the_callers_key_is_revoked() -> None:
    job_id = uuid4()

    token = tokens().make(job_id, ANN).text

    assert tokens(SECRET, "static:ann", "static:bob").is_good(token, job_id)
    assert not tokens(SECRET, "static:bob").is_good(token, job_id)


def test_a_running_server_follows_its_secret_and_its_keys() -> None:
    job_id = uuid4()
    secret, keys = [SECRET], [frozenset({"static:ann"})]
    running = WatchTokens(lambda: secret[0], lambda: keys[0])
    token = running.make(job_id, ANN).text
    assert running.is_good(token, job_id)

    secret[0] = SECRET[::-1]
    assert not running.is_good(token, job_id)
    secret[0] = SECRET
    assert running.is_good(token, job_id)
    keys[0] = frozenset()
    assert not running.is_good(token, job_id)


def test_watch_token_without_keys_only_expires() -> None:
    job_id = uuid4()
    unbound = WatchTokens(lambda: SECRET, None)

    token = unbound.make(job_id, Identity("ann", frozenset(), key="anything")).text

    assert unbound.is_good(token, job_id)
    assert not tokens().is_good(token, job_id)


@pytest.mark.parametrize("part", [0, 1])
def test_watch_token_cannot_be_modified(part: int) -> None:
    job_id = uuid4()
    both = tokens(SECRET, "static:ann", "static:bob")
    parts = both.make(job_id, ANN).text.split(".")
    bob = Identity("bob", frozenset(), expires_at=time.time() + 60, key="static:bob")

    parts[part] = both.make(job_id, bob).text.split(".")[part]

    assert not both.is_good(".".join(parts), job_id)


@pytest.mark.parametrize(
    "token",
    ["", ".", "x", "7fffffff.", "-1.x", "é.é.é", "\ud800.\ud800", "0x10.a.b", f"{'f' * 9000}.a.b"],
)
def test_malformed_watch_token_is_refused(token: str) -> None:
    assert not tokens().is_good(token, uuid4())


def test_watch_token_is_url_safe_and_anonymous() -> None:
    token = tokens().make(uuid4(), ANN).text

    assert all(character.isalnum() or character in "-_." for character in token)
    assert len(token) < 80
    assert "ann" not in token
