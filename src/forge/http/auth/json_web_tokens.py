"""JSON Web Tokens: a pinned algorithm, a required expiry, roles and tenant from the claims."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from forge.config.server import MAX_TENANT_ID, JwtConfig
from forge.core.errors import ConfigError
from forge.http.auth.access import Identity, Role
from forge.http.auth.watched_file import WatchedFile

# Seconds of clock skew between the issuer and this server.
LEEWAY = 2
# The end of the year 9999; larger values lose precision as floats.
LATEST_TIME = 253_402_300_799
TIMES = ("exp", "nbf", "iat")
MAX_SUBJECT_LENGTH = 255
# Shorter keys can be factored.
MIN_RSA_BITS = 2048
# The id of a key for tokens without `kid`.
ONLY_KEY = ""


class InvalidToken(Exception):
    """A token is rejected; the message says why."""


class VerificationKey(NamedTuple):
    """A key that verifies tokens, and a fingerprint of it and of the rules."""

    material: Any
    fingerprint: str


class JsonWebTokens:
    """Verifies tokens that another service issues."""

    def __init__(self, config: JwtConfig, grace: float) -> None:
        self._config = config
        self._jwks: WatchedFile[dict[str, VerificationKey]] | None = None
        if config.jwks is None:
            self._secret = VerificationKey(config.secret, self._fingerprint(config.secret))
        else:
            first = self._read(config.jwks)
            if not first:
                raise ConfigError(f"{config.jwks} has no RSA key for signatures; add one")
            self._jwks = WatchedFile(config.jwks, self._read, first, grace)

    def identify(self, token: str) -> Identity:
        """Return the holder of a token, or raise InvalidToken."""
        config = self._config
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid") or ONLY_KEY)
            claims = jwt.decode(
                token,
                key.material,
                # Pinned: the token's header must not choose how it is verified.
                algorithms=[config.algorithm],
                issuer=config.issuer,
                audience=config.audience,
                leeway=LEEWAY,
                options={"require": ["exp", "sub"], "verify_aud": config.audience is not None},
            )
        except jwt.PyJWTError as error:
            raise InvalidToken(f"the token is invalid ({_reason(error)})") from error
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise InvalidToken("the token is malformed") from error
        return self._identity(claims, key.fingerprint)

    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of the current keys; they change with the rules."""
        keys = [self._secret] if self._jwks is None else self._jwks.value().values()
        return frozenset(key.fingerprint for key in keys)

    def require_current(self) -> None:
        """Raise FileUnreadable if the JWKS file has been unreadable for too long."""
        if self._jwks is not None:
            self._jwks.value()

    def _key(self, key_id: str) -> VerificationKey:
        if self._jwks is None:
            return self._secret
        keys = self._jwks.value()
        if key_id not in keys:
            raise InvalidToken("the token's key is not in the JWKS file")
        return keys[key_id]

    def _read(self, path: Path) -> dict[str, VerificationKey]:
        return {
            key_id: VerificationKey(key, self._fingerprint(key.public_numbers()))
            for key_id, key in read_keys(path).items()
        }

    def _fingerprint(self, key: object) -> str:
        known = f"{self._config.model_dump_json()} {key}"
        return f"jwt:{sha256(known.encode()).hexdigest()}"

    def _identity(self, claims: Mapping[str, Any], fingerprint: str) -> Identity:
        for name in TIMES:
            _check_time(claims, name)
        return Identity(
            name=_subject(claims["sub"]),
            roles=_roles(claims.get(self._config.roles_claim)),
            tenant_id=self._tenant(claims.get(self._config.tenant_claim)),
            expires_at=float(claims["exp"]) + LEEWAY,
            key=fingerprint,
        )

    def _tenant(self, claim: object) -> int | None:
        name = self._config.tenant_claim
        if claim is None and not self._config.operators:
            raise InvalidToken(
                f"the token has no {name} claim, which only operators may lack; set "
                "[auth.jwt] operators to allow it"
            )
        if claim is None:
            return None
        if type(claim) is not int or abs(claim) > MAX_TENANT_ID:
            raise InvalidToken(f"the token's {name} is not an integer")
        return claim


def read_keys(path: Path) -> dict[str, Any]:
    """Read the RSA keys of a JWKS file by id; a single key also verifies tokens without one."""
    try:
        found = json.loads(path.read_text("utf-8"))["keys"]
        keys = {
            str(key.get("kid", ONLY_KEY)): jwt.PyJWK(key, algorithm="RS256").key
            for key in found
            if key.get("kty") == "RSA" and key.get("use", "sig") == "sig"
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise ConfigError(
            f"{path} is not a JWKS file ({type(error).__name__}: {error}); [auth.jwt] jwks needs "
            'one such as {"keys": [{"kty": "RSA", "kid": …, "n": …, "e": …}]}'
        ) from error
    for key_id, key in keys.items():
        if key.key_size < MIN_RSA_BITS:
            raise ConfigError(
                f"{path}: the RSA key {key_id!r} has {key.key_size} bits, fewer than the required "
                f"{MIN_RSA_BITS}; replace it with a longer one"
            )
    if len(keys) == 1:
        keys[ONLY_KEY] = next(iter(keys.values()))
    return keys


def _check_time(claims: Mapping[str, Any], name: str) -> None:
    time = claims.get(name, 0)
    if type(time) not in (int, float) or not 0 <= time <= LATEST_TIME:  # excludes NaN
        raise InvalidToken(f"the token's {name} is not a time in seconds since 1970")


def _subject(claim: str) -> str:
    if not 0 < len(claim) <= MAX_SUBJECT_LENGTH or not claim.isprintable():
        raise InvalidToken(f"the token's sub is not 1 to {MAX_SUBJECT_LENGTH} printable characters")
    return claim


def _roles(claim: object) -> frozenset[Role]:
    given = claim.split() if isinstance(claim, str) else claim
    if not isinstance(given, list):
        return frozenset()
    return frozenset(role for role in Role if role.value in given)


def _reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "expired"
        case jwt.InvalidIssuerError():
            return "wrong issuer"
        case jwt.InvalidAudienceError():
            return "wrong audience"
        case jwt.MissingRequiredClaimError():
            return f"missing claim {error.claim}"
        case jwt.ImmatureSignatureError():
            return "not valid yet"
    return "wrong signature or format"
