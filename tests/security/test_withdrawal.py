"""Access ends when the settings that granted it change: at once, or after a grace period."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from forge import Config
from forge.cli.tokens import block_of
from forge.http.auth.authenticator import Authenticator
from forge.http.problems.problem import Problem
from tests.cli.command import APPS, Project
from tests.faults.kit.process import Child, wait_until
from tests.http.bearers import TOKEN, refusal, static
from tests.http.test_server_command import address

SECRET = "a secret of thirty-two characters or more"
# Longer than the interval at which files are looked at, so that the grace is seen to hold.
GRACE = 3
KNOWN = {"Authorization": f"Bearer {TOKEN}"}


def replace(file: Path, text: str) -> Path:
    """Write a file as a deployment does: at once."""
    written = file.with_suffix(".new")
    written.write_text(text)
    os.replace(written, file)
    return file


def settings(*, secret: str = SECRET, grace: int = GRACE, rest: str | None = None) -> str:
    rest = block_of(static(tenant_id=7)) if rest is None else rest
    return f'[auth]\nsecret = "{secret}"\nreload_grace = "{grace}s"\n\n{rest}'


def is_known(known: Authenticator, token: str) -> int:
    """Return 200 for a token that is accepted, and else the status of its refusal."""
    try:
        known.identify_token(token)
    except Problem as problem:
        return problem.status
    return 200


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return replace(tmp_path / "forge.toml", settings())


@pytest.mark.parametrize("broken", ["[auth", "[worker]\nmax_concurrent = 0", None])
def test_a_broken_file_keeps_the_old_settings_for_its_grace_period(
    file: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    known = Authenticator.of(Config.load(file, env={}))
    bearer = known.identify_token(TOKEN)

    if broken is None:
        file.unlink()
    else:
        replace(file, broken)

    wait_until(lambda: is_known(known, TOKEN) and "is used for 3 s more" in caplog.text, 5, "seen")
    assert is_known(known, TOKEN) == 200
    assert known.is_still_valid(bearer)
    wait_until(lambda: is_known(known, TOKEN) == 503, GRACE + 5, "the grace is over")
    assert not known.is_still_valid(bearer)
    assert str(file) in caplog.text
    assert caplog.text.count("CRITICAL") == 1
    replace(file, settings())
    wait_until(lambda: is_known(known, TOKEN) == 200, 5, "the corrected file is read")


def test_another_mistake_does_not_prolong_the_grace(file: Path) -> None:
    known = Authenticator.of(Config.load(file, env={}))
    mistakes = 0

    def refused() -> bool:
        nonlocal mistakes
        mistakes += 1
        replace(file, f"[auth{'h' * mistakes}")
        return is_known(known, TOKEN) == 503

    wait_until(refused, GRACE + 5, "the grace is over though the file keeps changing")


def test_an_emptied_settings_file_rejects_all_callers_at_once(file: Path) -> None:
    known = Authenticator.of(Config.load(file, env={}))

    replace(file, "")

    wait_until(lambda: is_known(known, TOKEN) == 401, 2.5, "all callers are rejected")


def test_a_static_token_ends_at_its_time(tmp_path: Path) -> None:
    ends = {"past": "2020-01-01T00:00:00Z", "future": "2099-01-01T00:00:00+02:00"}
    expired, good = (
        Authenticator.of(
            Config.load(
                replace(tmp_path / f"{name}.toml", settings(rest=block_of(static(expires_at=end)))),
                env={},
            )
        )
        for name, end in ends.items()
    )

    assert "expired" in refusal(expired, TOKEN).detail
    assert good.identify_token(TOKEN).expires_at == 4_070_901_600


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def jwks(*keys: rsa.RSAPrivateKey) -> str:
    public = [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) for key in keys]
    return json.dumps({"keys": [entry | {"kid": str(n)} for n, entry in enumerate(public)]})


def signed(key: rsa.RSAPrivateKey) -> str:
    claims = {"sub": "ann", "roles": ["user"], "tenant_id": 7, "exp": time.time() + 600}
    return jwt.encode(claims | {"iss": "us", "aud": "we"}, key, "RS256", headers={"kid": "0"})


@pytest.fixture
def keys_file(tmp_path: Path, key: rsa.RSAPrivateKey) -> Path:
    return replace(tmp_path / "keys.json", jwks(key))


@pytest.fixture
def by_keys(file: Path, keys_file: Path) -> Authenticator:
    rest = f'[auth.jwt]\nalgorithm = "RS256"\njwks = "{keys_file}"\nissuer = "us"\naudience = "we"'
    replace(file, settings(rest=f"{rest}\n\n{block_of(static())}"))
    return Authenticator.of(Config.load(file, env={}))


@pytest.mark.parametrize("text", ['{"keys": []}', '{"keys": [{"kty": "EC"}]}'])
def test_an_emptied_jwks_file_has_no_keys_at_once(
    by_keys: Authenticator, keys_file: Path, key: rsa.RSAPrivateKey, text: str
) -> None:
    bearer = by_keys.identify_token(signed(key))

    replace(keys_file, text)

    wait_until(lambda: not by_keys.is_still_valid(bearer), 2.5, "the key is withdrawn")
    assert is_known(by_keys, signed(key)) == 401
    assert is_known(by_keys, TOKEN) == 200


@pytest.mark.parametrize("text", ["", '{"keys"', '{"keys": [{"kty": "RSA"}]}', "weak"])
def test_a_broken_jwks_file_holds_for_its_grace_and_then_not(
    by_keys: Authenticator, keys_file: Path, file: Path, key: rsa.RSAPrivateKey, text: str
) -> None:
    bearer = by_keys.identify_token(signed(key))

    replace(keys_file, jwks(rsa.generate_private_key(65537, 1024)) if text == "weak" else text)
    # A change elsewhere does not start the grace again.
    replace(file, f"{file.read_text()}\n# touched")

    wait_until(lambda: is_known(by_keys, signed(key)) == 503, GRACE + 5, "the grace is over")
    assert not by_keys.is_still_valid(bearer)
    # Static tokens do not depend on that file.
    assert is_known(by_keys, TOKEN) == 200
    replace(keys_file, jwks(key))
    wait_until(lambda: is_known(by_keys, signed(key)) == 200, 5, "the corrected file is read")


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "shop.py").write_text((APPS / "shop.py").read_text())
    project = Project(database_url, tmp_path)
    replace(tmp_path / "forge.toml", settings(grace=1))
    assert project.forge("migrate", "--app", "shop:app").returncode == 0
    return project


@pytest.fixture
def serving(project: Project) -> Iterator[Child]:
    with project.start("server", "shop:app", "--port", "0") as child:
        yield child


def test_a_server_that_cannot_read_its_settings_is_not_ready(
    project: Project, serving: Child
) -> None:
    at = address(serving)
    assert httpx.get(f"{at}/readyz").status_code == 200

    replace(project.folder / "forge.toml", "[auth")

    wait_until(lambda: httpx.get(f"{at}/readyz").status_code == 503, 10, "it is not ready")
    assert "authentication settings" in httpx.get(f"{at}/readyz").json()["detail"]
    refused = httpx.get(f"{at}/_api/jobs", headers=KNOWN)
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert httpx.get(f"{at}/livez").status_code == 200
    assert "CRITICAL" in serving.output()
    replace(project.folder / "forge.toml", settings(grace=1))
    wait_until(lambda: httpx.get(f"{at}/readyz").status_code == 200, 10, "it is ready again")


@pytest.mark.parametrize("changed", ["secret", "token"])
def test_a_stream_by_a_watch_token_ends_with_what_signed_or_made_it(
    project: Project, serving: Child, changed: str
) -> None:
    with httpx.Client(base_url=address(serving), headers=KNOWN, timeout=30) as client:
        body = {"args": {"name": "ann"}, "delay": "1h"}
        made = client.post("/_api/jobs/greet/dispatch", json=body).json()
        other = str(uuid4())
        renewed = client.post(f"/_api/jobs/{made['job_id']}/watch_token").json()["watch_token"]
        events = f"/_api/jobs/{made['job_id']}/events?watch_token={renewed}"
        with httpx.stream("GET", f"{client.base_url}{events}", timeout=30) as stream:
            lines = stream.iter_lines()
            wait_until(lambda: next(lines) == "event: job", 10, "the job is shown")

            if changed == "secret":
                replace(project.folder / "forge.toml", settings(secret=f"{SECRET}{other}"))
            else:
                left = block_of(static(sha256="0" * 64))
                replace(project.folder / "forge.toml", settings(rest=left))
            began = time.monotonic()
            received = list(lines)  # until the server ends the stream

        assert time.monotonic() - began < 10
        assert "event: problem" in received
        assert httpx.get(f"{client.base_url}{events}").status_code == 401


def test_a_token_that_ends_makes_watch_tokens_that_end_with_it(
    project: Project, serving: Child
) -> None:
    ends = int(time.time()) + 600
    at = address(serving)
    entry: dict[str, Any] = static(tenant_id=7) | {
        "expires_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
    }
    replace(project.folder / "forge.toml", settings(rest=block_of(entry)))

    def end_of_a_new_one() -> int:
        made = httpx.post(
            f"{at}/_api/jobs/greet/dispatch", json={"args": {"name": "a"}}, headers=KNOWN
        )
        renew = f"{at}/_api/jobs/{made.json()['job_id']}/watch_token"
        return int(httpx.post(renew, headers=KNOWN).json()["expires_at"])

    wait_until(lambda: end_of_a_new_one() == ends, 10, "the watch token ends with the token")
