"""JSON Web Tokens: one pinned algorithm, an end for each, roles and tenant from the claims."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from forge.config_server import LARGEST_TENANT, JwtConfig
from forge.core.errors import ConfigError
from forge.http.identity import Identity, Role
from forge.http.reread import Reread

# Clocks differ a little.
LEEWAY = 2
# The end of the year 9999: no clock reads more, and no float is too small for it.
LATEST = 253_402_300_799
TIMES = ("exp", "nbf", "iat")
LONGEST_SUBJECT = 255
# A shorter one can be factored.
SHORTEST_RSA_KEY = 2048
ONLY_KEY = ""


class NotGood(Exception):
    """Why a token is refused."""


class Key(NamedTuple):
    """What verifies a token, and what tells it from a key that takes its place."""

    material: Any
    mark: str


class JsonWebTokens:
    """Reads tokens that another service issues."""

    def __init__(self, config: JwtConfig, grace: float) -> None:
        self._config = config
        self._jwks: Reread[dict[str, Key]] | None = None
        if config.jwks is None:
            self._secret = Key(config.secret, self._mark(config.secret))
        else:
            first = self._read(config.jwks)
            if not first:
                raise ConfigError(f"{config.jwks}: has no RSA key to verify with; add one")
            self._jwks = Reread(config.jwks, self._read, first, grace)

    def bearer(self, token: str) -> Identity:
        """Return who bears this token, or raise NotGood."""
        config = self._config
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid") or ONLY_KEY)
            claims = jwt.decode(
                token,
                key.material,
                # Pinned: a token's own header never chooses how it is verified.
                algorithms=[config.algorithm],
                issuer=config.issuer,
                audience=config.audience,
                leeway=LEEWAY,
                options={"require": ["exp", "sub"], "verify_aud": config.audience is not None},
            )
        except jwt.PyJWTError as error:
            raise NotGood(f"the token is refused ({_reason(error)})") from error
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise NotGood("the token cannot be read") from error
        return self._identity(claims, key.mark)

    def marks(self) -> frozenset[str]:
        """Return the marks of the keys in use: under other rules a key has another mark."""
        keys = [self._secret] if self._jwks is None else self._jwks.value().values()
        return frozenset(key.mark for key in keys)

    def require_current(self) -> None:
        """Raise Outdated when the keys have been unreadable for too long."""
        if self._jwks is not None:
            self._jwks.value()

    def _key(self, key_id: str) -> Key:
        if self._jwks is None:
            return self._secret
        keys = self._jwks.value()
        if key_id not in keys:
            raise NotGood("the token's key is not in the JWKS file")
        return keys[key_id]

    def _read(self, path: Path) -> dict[str, Key]:
        return {
            key_id: Key(key, self._mark(key.public_numbers()))
            for key_id, key in read_keys(path).items()
        }

    def _mark(self, key: object) -> str:
        known = f"{self._config.model_dump_json()} {key}"
        return f"jwt:{sha256(known.encode()).hexdigest()}"

    def _identity(self, claims: Mapping[str, Any], mark: str) -> Identity:
        for name in TIMES:
            _check_time(claims, name)
        return Identity(
            name=_subject(claims["sub"]),
            roles=_roles(claims.get(self._config.roles_claim)),
            tenant_id=self._tenant(claims.get(self._config.tenant_claim)),
            expires_at=float(claims["exp"]) + LEEWAY,
            key=mark,
        )

    def _tenant(self, claim: object) -> int | None:
        name = self._config.tenant_claim
        if claim is None and not self._config.operators:
            raise NotGood(
                f"the token has no {name}, which would make its bearer an operator; [auth.jwt] "
                "operators allows that"
            )
        if claim is None:
            return None
        if type(claim) is not int or abs(claim) > LARGEST_TENANT:
            raise NotGood(f"the token's {name} is not a whole number")
        return claim


def read_keys(path: Path) -> dict[str, Any]:
    """Read the RSA keys of a JWKS file by their ids; a single key also serves without one."""
    try:
        found = json.loads(path.read_text("utf-8"))["keys"]
        keys = {
            str(key.get("kid", ONLY_KEY)): jwt.PyJWK(key, algorithm="RS256").key
            for key in found
            if key.get("kty") == "RSA" and key.get("use", "sig") == "sig"
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise ConfigError(
            f"{path}: is not a JWKS file ({type(error).__name__}: {error}); [auth.jwt] jwks needs "
            'one such as {"keys": [{"kty": "RSA", "kid": …, "n": …, "e": …}]}'
        ) from error
    for key_id, key in keys.items():
        if key.key_size < SHORTEST_RSA_KEY:
            raise ConfigError(
                f"{path}: the RSA key {key_id!r} has {key.key_size} bits, fewer than the "
                f"{SHORTEST_RSA_KEY} that are safe; replace it with a longer one"
            )
    if len(keys) == 1:
        keys[ONLY_KEY] = next(iter(keys.values()))
    return keys


def _check_time(claims: Mapping[str, Any], name: str) -> None:
    time = claims.get(name, 0)
    if type(time) not in (int, float) or not 0 <= time <= LATEST:  # nan is not in it either
        raise NotGood(f"the token's {name} is not a time in seconds since 1970")


def _subject(claim: str) -> str:
    if not 0 < len(claim) <= LONGEST_SUBJECT or not claim.isprintable():
        raise NotGood(f"the token's sub is not 1 to {LONGEST_SUBJECT} printable characters")
    return claim


def _roles(claim: object) -> frozenset[Role]:
    given = claim.split() if isinstance(claim, str) else claim
    if not isinstance(given, list):
        return frozenset()
    return frozenset(role for role in Role if role.value in given)


def _reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "it has expired"
        case jwt.InvalidIssuerError():
            return "it is another issuer's"
        case jwt.InvalidAudienceError():
            return "it is for another audience"
        case jwt.MissingRequiredClaimError():
            return f"it lacks the claim {error.claim}"
        case jwt.ImmatureSignatureError():
            return "it is not valid yet"
    return "its signature or form is not good"
