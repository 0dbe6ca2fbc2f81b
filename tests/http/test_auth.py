"""A token says who calls: known by its hash, or signed by somebody we trust."""

import base64
import hmac
import json
import os
import time
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from forge import Config, Forge
from forge.cli.token import block_of, hash_of
from forge.config_server import AuthConfig
from forge.core.errors import ConfigError
from forge.http.auth import Authenticator
from forge.http.identity import Identity, Role
from forge.http.problem import Problem
from tests.faults.kit.process import wait_until
from tests.http.conftest import MakeToken

TOKEN = "forge_a-token-of-the-tests"
SECRET = "a secret of thirty-two characters or more"
ALGORITHM = {"algorithm": "HS256", "secret": SECRET}


def authenticator(**auth: Any) -> Authenticator:
    settings = AuthConfig.model_validate(auth)
    return Authenticator(lambda: settings)


def static(**entry: Any) -> dict[str, Any]:
    return {"name": "ann", "sha256": hash_of(TOKEN), "roles": ["user"], **entry}


def signed(**claims: Any) -> str:
    return jwt.encode({"sub": "ann", "exp": time.time() + 60, **claims}, SECRET, "HS256")


def refusal(known: Authenticator, token: str | None) -> Problem:
    with pytest.raises(Problem) as refused:
        known.identify(None if token is None else f"Bearer {token}")
    problem = refused.value
    assert problem.status == 401
    assert problem.headers["WWW-Authenticate"] == "Bearer"
    assert token is None or token not in problem.detail
    return problem


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
def test_whoever_brings_no_good_token_is_refused(header: str | None) -> None:
    known = authenticator(tokens=[static()], jwt=ALGORITHM)

    with pytest.raises(Problem) as refused:
        known.identify(header)

    assert refused.value.status == 401


def test_the_hash_itself_is_no_token() -> None:
    refusal(authenticator(tokens=[static()]), hash_of(TOKEN))


def test_without_tokens_nobody_comes_in() -> None:
    assert "forge token create" in refusal(authenticator(), TOKEN).detail


def test_a_signed_token_says_who_in_its_claims() -> None:
    known = authenticator(jwt=ALGORITHM)
    end = int(time.time()) + 60

    found = known.identify_token(signed(roles=["staff", "boss"], tenant_id=7, exp=end))

    assert (found.name, found.roles, found.tenant_id) == ("ann", {Role.STAFF}, 7)
    assert found.expires_at is not None
    assert end <= found.expires_at < end + 5


def test_the_claims_may_have_other_names() -> None:
    known = authenticator(jwt={**ALGORITHM, "roles_claim": "scope", "tenant_claim": "org"})

    found = known.identify_token(signed(scope="user manager email", org=9))

    assert (found.roles, found.tenant_id) == ({Role.USER, Role.MANAGER}, 9)


def test_a_token_without_a_tenant_is_an_operators() -> None:
    assert authenticator(jwt=ALGORITHM).identify_token(signed()).tenant_id is None


@pytest.mark.parametrize("roles", [7, None, {"user": True}, [["user"]], [1]])
def test_roles_that_cannot_be_read_are_none(roles: Any) -> None:
    assert authenticator(jwt=ALGORITHM).identify_token(signed(roles=roles)).roles == frozenset()


@pytest.mark.parametrize("tenant", ["7", 7.0, True, [], {}, "", 2**63, -(2**63) - 1])
def test_a_tenant_that_is_no_number_is_refused(tenant: Any) -> None:
    problem = refusal(authenticator(jwt=ALGORITHM), signed(tenant_id=tenant))

    assert "tenant_id" in problem.detail


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"exp": 1},
        {"exp": time.time() - 30},
        {"exp": "soon"},
        {"sub": None},
        {"sub": 7},
        {"nbf": time.time() + 86_400},
    ],
)
def test_a_token_that_is_over_or_lacks_a_claim_is_refused(claims: dict[str, Any]) -> None:
    given = {"sub": "ann", "exp": time.time() + 60, **claims}
    given = {key: value for key, value in given.items() if value is not None}

    refusal(authenticator(jwt=ALGORITHM), _forge(given))


@pytest.mark.parametrize(
    ("wanted", "claims"),
    [
        ({"issuer": "us"}, {"iss": "them"}),
        ({"issuer": "us"}, {}),
        ({"audience": "forge"}, {"aud": "shop"}),
        ({"audience": "forge"}, {}),
    ],
)
def test_another_issuers_or_audiences_token_is_refused(
    wanted: dict[str, str], claims: dict[str, str]
) -> None:
    refusal(authenticator(jwt={**ALGORITHM, **wanted}), signed(**claims))


def test_the_right_issuer_and_audience_are_let_in() -> None:
    known = authenticator(jwt={**ALGORITHM, "issuer": "us", "audience": "forge"})

    assert known.identify_token(signed(iss="us", aud=["forge", "shop"])).name == "ann"


@pytest.mark.parametrize("algorithm", ["none", "HS384", "HS512", "RS256", "None", ""])
def test_a_token_does_not_choose_its_algorithm(algorithm: str) -> None:
    refusal(authenticator(jwt=ALGORITHM), _forge({"sub": "ann", "exp": 2**32}, algorithm))


def test_a_token_signed_with_another_secret_is_refused() -> None:
    refusal(authenticator(jwt=ALGORITHM), _forge({"sub": "ann", "exp": 2**32}, secret=b"x" * 32))


@pytest.mark.parametrize(
    "token", ["a.b.c", "..", ". .", "e30.e30.", "é.é.é", f"{'W' * 9000}.e30.e30", "x" * 20_000]
)
def test_what_is_no_token_at_all_is_refused(token: str) -> None:
    refusal(authenticator(tokens=[static()], jwt=ALGORITHM), token)


@pytest.fixture(scope="module")
def keys() -> list[rsa.RSAPrivateKey]:
    return [rsa.generate_private_key(65537, 2048) for _ in range(2)]


def test_a_public_key_is_found_by_its_id(tmp_path: Path, keys: list[rsa.RSAPrivateKey]) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"old": keys[0], "new": keys[1]}))

    assert known.identify_token(_by(keys[0], "old")).name == "ann"
    assert known.identify_token(_by(keys[1], "new")).name == "ann"
    refusal(known, _by(keys[0], "new"))
    refusal(known, _by(keys[0], "other"))
    refusal(known, _by(keys[0], None))


def test_the_only_key_needs_no_id(tmp_path: Path, keys: list[rsa.RSAPrivateKey]) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"one": keys[0]}))

    assert known.identify_token(_by(keys[0], None)).name == "ann"


def test_a_public_key_is_no_shared_secret(tmp_path: Path, keys: list[rsa.RSAPrivateKey]) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"one": keys[0]}))
    public = keys[0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    refusal(known, _forge({"sub": "ann", "exp": 2**32}, "HS256", public, kid="one"))


def test_a_key_that_is_taken_away_opens_nothing_more(
    tmp_path: Path, keys: list[rsa.RSAPrivateKey]
) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"old": keys[0], "new": keys[1]}))
    bearer = known.identify_token(_by(keys[0], "old"))
    assert known.is_still_valid(bearer)

    _jwks(tmp_path, {"new": keys[1]})

    wait_until(lambda: not known.is_still_valid(bearer), 5, "its key is known to be gone")
    refusal(known, _by(keys[0], "old"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}'])
def test_a_file_without_keys_is_named_at_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"keys\.json"):
        authenticator(jwt={"algorithm": "RS256", "jwks": file})


def test_a_withdrawn_token_is_refused_within_seconds(tmp_path: Path) -> None:
    file = _settings(tmp_path, block_of(static()))
    known = Authenticator.of(Config.load(file, env={}))
    bearer = known.identify_token(TOKEN)
    assert known.is_still_valid(bearer)

    _settings(tmp_path, block_of(static(sha256="0" * 64)))

    wait_until(lambda: not known.is_still_valid(bearer), 5, "the withdrawal is known")
    refusal(known, TOKEN)


def test_a_token_with_fewer_rights_than_before_is_withdrawn(tmp_path: Path) -> None:
    known = Authenticator.of(Config.load(_settings(tmp_path, block_of(static())), env={}))
    bearer = known.identify_token(TOKEN)

    _settings(tmp_path, block_of(static(roles=["staff"])))

    wait_until(lambda: not known.is_still_valid(bearer), 5, "the withdrawal is known")
    assert known.identify_token(TOKEN).roles == {Role.STAFF}


def test_a_file_with_a_mistake_leaves_what_held(tmp_path: Path) -> None:
    known = Authenticator.of(Config.load(_settings(tmp_path, block_of(static())), env={}))
    other = "forge_another"

    _settings(tmp_path, "[auth")
    assert known.identify_token(TOKEN).name == "ann"
    _settings(tmp_path, block_of(static(sha256=hash_of(other), name="bob")))

    wait_until(lambda: _is_known(known, other), 5, "the mended file is read")


def test_a_signed_token_is_good_until_its_end() -> None:
    known = authenticator(jwt=ALGORITHM)

    assert known.is_still_valid(known.identify_token(signed()))
    assert not known.is_still_valid(Identity("ann", frozenset(), expires_at=time.time() - 1))


async def test_without_a_token_a_route_asks_for_one(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"/_api/jobs/{'0' * 32}/watch_token")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"


async def test_a_role_that_is_not_enough_is_told_so(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.post(f"/_api/jobs/{'0' * 32}/watch_token", headers=token("manager"))

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_a_watch_token_is_renewed_for_who_may_see_the_job(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job
    async def nothing(ctx: Any, input: dict[str, Any]) -> None: ...

    job = await nothing.dispatch({}, tenant_id=7)
    renew = f"/_api/jobs/{job.id}/watch_token"

    for caller in (token("user", tenant=7), token("staff"), token("user")):
        answer = await http.post(renew, headers=caller)
        assert answer.status_code == 200, answer.text
        assert answer.json()["expires_at"] > time.time() + 3500
    for stranger in (token("user", tenant=8), token("user", "staff", "manager", tenant=8)):
        assert (await http.post(renew, headers=stranger)).status_code == 404


async def test_a_job_without_a_tenant_is_the_operators(
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
    """Write the settings as a deployment does: at once."""
    file, written = folder / "forge.toml", folder / "written"
    written.write_text(text)
    os.replace(written, file)
    return file


def _jwks(folder: Path, keys: dict[str, rsa.RSAPrivateKey]) -> dict[str, Any]:
    entries = []
    for kid, key in keys.items():
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        entries.append({**public, "kid": kid, "use": "sig"})
    written = folder / "written"
    written.write_text(json.dumps({"keys": entries}))
    os.replace(written, folder / "keys.json")
    return {"algorithm": "RS256", "jwks": folder / "keys.json"}


def _by(key: rsa.RSAPrivateKey, kid: str | None) -> str:
    claims = {"sub": "ann", "exp": time.time() + 60}
    return jwt.encode(claims, key, "RS256", headers=None if kid is None else {"kid": kid})


def _forge(
    claims: dict[str, Any],
    algorithm: str = "HS256",
    secret: bytes = SECRET.encode(),
    **header: str,
) -> str:
    """Write a token by hand, as no library would."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"typ": "JWT", "alg": algorithm, **header}, claims)
    ]
    message = b".".join(parts)
    hashed_by = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}.get(algorithm)
    signature = hmac.digest(secret, message, hashed_by) if hashed_by else b""
    return (message + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()
