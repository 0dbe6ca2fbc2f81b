"""Static tokens: recognised by their hash, and revoked within seconds."""

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge import Config, Forge
from forge.cli.tokens import block_of, hash_of
from forge.http.auth.access import Identity, Role
from forge.http.auth.authenticator import Authenticator
from forge.http.problems.problem import Problem
from tests.faults.kit.process import wait_until
from tests.http.bearers import ALGORITHM, TOKEN, authenticator, refusal, static
from tests.http.conftest import MakeToken


def test_a_static_token_is_known_by_its_hash() -> None:
    known = authenticator(tokens=[static(roles=["user", "staff"], tenant_id=7)])

    assert known.identify(f"Bearer {TOKEN}") == Identity("ann", frozenset({"user", "staff"}), 7)


def test_the_scheme_is_read_in_any_case() -> None:
    known = authenticator(tokens=[static()])

    assert known.identify(f"bearer  {TOKEN} ").name == "ann"


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \ud800é"],
)
def test_missing_or_unknown_token_is_refused(header: str | None) -> None:
    known = authenticator(tokens=[static()], jwt=ALGORITHM)

    with pytest.raises(Problem) as refused:
        known.identify(header)

    assert refused.value.status == 401


def test_hash_is_not_accepted_as_a_token() -> None:
    refusal(authenticator(tokens=[static()]), hash_of(TOKEN))


def test_server_without_tokens_refuses_all_callers() -> None:
    assert "forge token create" in refusal(authenticator(), TOKEN).detail


def test_revoked_token_is_refused_within_seconds(tmp_path: Path) -> None:
    file = _settings(tmp_path, block_of(static()))
    known = Authenticator.of(Config.load(file, env={}))
    bearer = known.identify_token(TOKEN)
    assert known.is_still_valid(bearer)

    _settings(tmp_path, block_of(static(sha256="0" * 64)))

    wait_until(lambda: not known.is_still_valid(bearer), 5, "the withdrawal is known")
    refusal(known, TOKEN)


def test_token_with_changed_roles_is_revoked(tmp_path: Path) -> None:
    known = Authenticator.of(Config.load(_settings(tmp_path, block_of(static())), env={}))
    bearer = known.identify_token(TOKEN)

    _settings(tmp_path, block_of(static(roles=["staff"])))

    wait_until(lambda: not known.is_still_valid(bearer), 5, "the withdrawal is known")
    assert known.identify_token(TOKEN).roles == {Role.STAFF}


def test_invalid_file_keeps_the_previous_rules(tmp_path: Path) -> None:
    known = Authenticator.of(Config.load(_settings(tmp_path, block_of(static())), env={}))
    other = "forge_another"

    _settings(tmp_path, "[auth")
    assert known.identify_token(TOKEN).name == "ann"
    _settings(tmp_path, block_of(static(sha256=hash_of(other), name="bob")))

    wait_until(lambda: _is_known(known, other), 5, "the mended file is read")


async def test_request_without_a_token_gets_a_challenge(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"/_api/jobs/{'0' * 32}/watch_token")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"


async def test_insufficient_role_is_forbidden(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.post(f"/_api/jobs/{'0' * 32}/watch_token", headers=token("manager"))

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_watch_token_is_renewed_for_the_jobs_tenant(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job
    async def nothing(ctx: Any, input: dict[str, Any]) -> None: ...

    job = await nothing.dispatch({}, tenant_id=7)
    renew = f"/_api/jobs/{job.id}/watch_token"

    for caller in (
        token("user", tenant=7, lifetime=7200),
        token("staff", lifetime=7200),
        token("user", lifetime=7200),
    ):
        answer = await http.post(renew, headers=caller)
        assert answer.status_code == 200, answer.text
        assert answer.json()["expires_at"] > time.time() + 3500
    for stranger in (token("user", tenant=8), token("user", "staff", "manager", tenant=8)):
        assert (await http.post(renew, headers=stranger)).status_code == 404


async def test_job_without_a_tenant_is_visible_to_operators_only(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job
    async def nothing(ctx: Any, input: dict[str, Any]) -> None: ...

    renew = f"/_api/jobs/{(await nothing.dispatch({})).id}/watch_token"

    assert (await http.post(renew, headers=token("user", tenant=7))).status_code == 404
    assert (await http.post(renew, headers=token("user"))).status_code == 200


def _is_known(known: Authenticator, token: str) -> bool:
    try:
        return bool(known.identify_token(token))
    except Problem:
        return False


def _settings(folder: Path, text: str) -> Path:
    """Replace the settings file atomically."""
    file, written = folder / "forge.toml", folder / "written"
    written.write_text(text)
    os.replace(written, file)
    return file
