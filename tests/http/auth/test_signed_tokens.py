"""JSON Web Tokens: signatures, claims and keys."""

import base64
import hmac
import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from forge.core.errors import ConfigError
from forge.http.auth.access import Identity, Role
from tests.faults.kit.process import wait_until
from tests.http.bearers import ALGORITHM, ANYBODY, SECRET, authenticator, refusal, signed, static


def test_identity_comes_from_the_claims() -> None:
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


@pytest.mark.parametrize("claims", [{}, {"tenant_id": None}])
def test_token_without_a_tenant_requires_the_operators_setting(
    claims: dict[str, Any],
) -> None:
    allowed = authenticator(jwt=ALGORITHM)
    default = authenticator(jwt={**ALGORITHM, "operators": False})

    assert allowed.identify_token(signed(**claims)).tenant_id is None
    assert "operators" in refusal(default, signed(**claims)).detail
    assert default.identify_token(signed(tenant_id=7)).tenant_id == 7


@pytest.mark.parametrize("roles", [7, None, {"user": True}, [["user"]], [1]])
def test_malformed_roles_are_ignored(roles: Any) -> None:
    assert authenticator(jwt=ALGORITHM).identify_token(signed(roles=roles)).roles == frozenset()


@pytest.mark.parametrize("tenant", ["7", 7.0, True, [], {}, "", 2**63, -(2**63) - 1])
def test_tenant_must_be_an_integer(tenant: Any) -> None:
    problem = refusal(authenticator(jwt=ALGORITHM), signed(tenant_id=tenant))

    assert "tenant_id" in problem.detail


@pytest.mark.parametrize(
    "claims", [{"exp": None}, {"exp": 1}, {"exp": "soon"}, {"sub": None}, {"sub": 7}]
)
def test_a_token_that_lacks_a_claim_is_refused(claims: dict[str, Any]) -> None:
    given = {"sub": "ann", "exp": time.time() + 60, **claims}
    given = {key: value for key, value in given.items() if value is not None}

    refusal(authenticator(jwt=ALGORITHM), _forge(given))


HUGE = "1" + "0" * 400


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "written",
    [
        *(HUGE, "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "-1", str(2**63), str(2**256)),
        *("true", "null", '"4102444800"', '"soon"', "[4102444800]", "{}", "1" * 5000),
    ],
)
def test_invalid_time_claims_are_refused(claim: str, written: str) -> None:
    claims = {"sub": '"ann"', "exp": str(int(time.time()) + 60)} | {claim: written}
    text = ",".join(f'"{name}":{value}' for name, value in claims.items())

    refusal(authenticator(jwt=ALGORITHM), _forge_text(f"{{{text}}}"))


@pytest.mark.parametrize("subject", ["", "a\0b", "a\nb", "\ud800", "x" * 256])
def test_invalid_subject_is_refused(subject: str) -> None:
    refusal(authenticator(jwt=ALGORITHM), _forge({"sub": subject, "exp": 4_102_444_800}))


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -30), ("nbf", 86_400)])
def test_expired_or_future_token_is_refused(claim: str, seconds: int) -> None:
    refusal(authenticator(jwt=ALGORITHM), signed(**{claim: time.time() + seconds}))


@pytest.mark.parametrize(
    ("wanted", "claims"),
    [
        ({"issuer": "us", "any_issuer": False}, {"iss": "them"}),
        ({"issuer": "us", "any_issuer": False}, {}),
        ({"audience": "forge", "any_audience": False}, {"aud": "shop"}),
        ({"audience": "forge", "any_audience": False}, {}),
    ],
)
def test_wrong_issuer_or_audience_is_refused(
    wanted: dict[str, Any], claims: dict[str, str]
) -> None:
    refusal(authenticator(jwt={**ALGORITHM, **wanted}), signed(**claims))


def test_right_issuer_and_audience_are_accepted() -> None:
    named = {"algorithm": "HS256", "secret": SECRET, "issuer": "us", "audience": "forge"}
    known = authenticator(jwt={**named, "operators": True})

    assert known.identify_token(signed(iss="us", aud=["forge", "shop"])).name == "ann"


@pytest.mark.parametrize("algorithm", ["none", "HS384", "HS512", "RS256", "None", ""])
def test_a_token_does_not_choose_its_algorithm(algorithm: str) -> None:
    refusal(authenticator(jwt=ALGORITHM), _forge({"sub": "ann", "exp": 2**32}, algorithm))


def test_a_token_signed_with_another_secret_is_refused() -> None:
    refusal(authenticator(jwt=ALGORITHM), _forge({"sub": "ann", "exp": 2**32}, secret=b"x" * 32))


@pytest.mark.parametrize(
    "token", ["a.b.c", "..", ". .", "e30.e30.", "é.é.é", f"{'W' * 9000}.e30.e30", "x" * 20_000]
)
def test_malformed_token_is_refused(token: str) -> None:
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


def test_public_key_is_not_accepted_as_a_shared_secret(
    tmp_path: Path, keys: list[rsa.RSAPrivateKey]
) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"one": keys[0]}))
    public = keys[0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    refusal(known, _forge({"sub": "ann", "exp": 2**32}, "HS256", public, kid="one"))


def test_removed_key_is_refused(tmp_path: Path, keys: list[rsa.RSAPrivateKey]) -> None:
    known = authenticator(jwt=_jwks(tmp_path, {"old": keys[0], "new": keys[1]}))
    bearer = known.identify_token(_by(keys[0], "old"))
    assert known.is_still_valid(bearer)

    _jwks(tmp_path, {"new": keys[1]})

    wait_until(lambda: not known.is_still_valid(bearer), 5, "its key is known to be gone")
    refusal(known, _by(keys[0], "old"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}'])
def test_startup_error_names_a_file_without_keys(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"keys\.json"):
        authenticator(jwt={"algorithm": "RS256", "jwks": file, **ANYBODY})


@pytest.mark.parametrize("bits", [1024, 2047])
def test_a_short_rsa_key_is_refused_at_the_start(tmp_path: Path, bits: int) -> None:
    weak = rsa.generate_private_key(65537, bits)

    with pytest.raises(ConfigError, match=f"{bits} bits, fewer than the required 2048"):
        authenticator(jwt=_jwks(tmp_path, {"one": weak}))


def test_signed_token_is_valid_until_it_expires() -> None:
    known = authenticator(jwt=ALGORITHM)

    assert known.is_still_valid(known.identify_token(signed()))
    assert not known.is_still_valid(Identity("ann", frozenset(), expires_at=time.time() - 1))


def _jwks(folder: Path, keys: dict[str, rsa.RSAPrivateKey]) -> dict[str, Any]:
    entries = []
    for kid, key in keys.items():
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        entries.append({**public, "kid": kid, "use": "sig"})
    written = folder / "written"
    written.write_text(json.dumps({"keys": entries}))
    os.replace(written, folder / "keys.json")
    return {"algorithm": "RS256", "jwks": folder / "keys.json", **ANYBODY}


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
    return _forge_text(json.dumps(claims), algorithm, secret, **header)


def _forge_text(
    claims: str, algorithm: str = "HS256", secret: bytes = SECRET.encode(), **header: str
) -> str:
    head = json.dumps({"typ": "JWT", "alg": algorithm, **header})
    parts = [base64.urlsafe_b64encode(part.encode()).rstrip(b"=") for part in (head, claims)]
    message = b".".join(parts)
    hashed_by = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}.get(algorithm)
    signature = hmac.digest(secret, message, hashed_by) if hashed_by else b""
    return (message + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()
