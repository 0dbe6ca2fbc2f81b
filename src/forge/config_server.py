"""The settings of the server: where it listens, and whom it lets in."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, field_validator

from forge.config_section import Section
from forge.config_values import (
    DatabaseUrl,
    Duration,
    Filled,
    Names,
    moment,
    sha256_hex,
    signing_secret,
    size,
    whole,
    without_password,
)
from forge.core.errors import InvalidValue

# What a request says besides the input of its job.
ENVELOPE = 1024**2
LARGEST_TENANT = 2**63 - 1

Secret = Annotated[str | None, BeforeValidator(signing_secret)]


class ServerConfig(Section):
    """Where the server listens, and the login it has to the database."""

    host: Filled = "127.0.0.1"
    port: Annotated[int, BeforeValidator(whole(0, 65_535))] = 8080
    # The login of role forge_api; without one the server uses [database] url.
    database_url: DatabaseUrl = None
    # None is 1 MB more than the largest input.
    max_body: Annotated[int | None, BeforeValidator(lambda v: v if v is None else size(v))] = None
    # Other sites whose pages may open a WebSocket; the server's own always may.
    allowed_origins: Names = ()
    # How urgent callers without the role staff may make a job: as its type says, or as they like.
    priorities: Literal["type", "any"] = "type"
    # How many jobs of one tenant may wait before the server takes no more; None is no limit.
    max_pending_per_tenant: Annotated[
        int | None, BeforeValidator(lambda v: v if v is None else whole(1, 100_000)(v))
    ] = None
    # How long a client may take to send its headers, to send its body, to send another request and
    # to read an answer. Bodies and answers of more than 16 KB a second have longer.
    header_timeout: Duration = timedelta(seconds=10)
    body_timeout: Duration = timedelta(seconds=30)
    # Longer than load balancers keep a connection without traffic, so that they close first.
    idle_timeout: Duration = timedelta(seconds=75)
    send_timeout: Duration = timedelta(seconds=60)
    max_header_bytes: Annotated[int, BeforeValidator(size)] = 65_536
    # None is what the limit of open files allows.
    max_connections: Annotated[
        int | None, BeforeValidator(lambda v: v if v is None else whole(1, 1_000_000)(v))
    ] = None

    def body_limit(self, max_input: int) -> int:
        """Return how many bytes the body of a request may have."""
        return max_input + ENVELOPE if self.max_body is None else self.max_body

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, without_password(value) if name == "database_url" else value


class TokenConfig(Section):
    """One token: the hash of it, who bears it, and what that allows."""

    name: str
    sha256: Annotated[str, BeforeValidator(sha256_hex)]
    roles: tuple[Literal["user", "staff", "manager"], ...]
    # Without a tenant the bearer is an operator, who sees every tenant's rows.
    tenant_id: Annotated[
        int | None,
        BeforeValidator(lambda v: v if v is None else whole(-LARGEST_TENANT, LARGEST_TENANT)(v)),
    ] = None
    expires_at: Annotated[
        datetime | None, BeforeValidator(lambda v: v if v is None else moment(v))
    ] = None

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name.strip():
            raise InvalidValue("must say whose token it is")
        return name

    @field_validator("roles")
    @classmethod
    def _has_a_role(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if not roles:
            raise InvalidValue('must have a role, such as ["user"]')
        return roles


class JwtConfig(Section):
    """Which JSON Web Tokens are good, and what their claims are called."""

    algorithm: Literal["HS256", "RS256"]
    secret: Secret = None
    jwks: Path | None = None
    # Before the claims that they excuse, whose checks read them.
    any_issuer: bool = False
    issuer: str | None = None
    any_audience: bool = False
    audience: str | None = None
    roles_claim: Filled = "roles"
    tenant_claim: Filled = "tenant_id"
    # Whether a token without the tenant's claim is an operator's, who sees every tenant's rows.
    operators: bool = False

    @field_validator("jwks")
    @classmethod
    def _has_its_key(cls, jwks: Path | None, given: ValidationInfo) -> Path | None:
        algorithm, secret = given.data.get("algorithm"), given.data.get("secret")
        if algorithm == "HS256" and (jwks is not None or secret is None):
            raise InvalidValue("is for RS256; HS256 needs a secret and no jwks")
        if algorithm == "RS256" and (jwks is None or secret is not None):
            raise InvalidValue('is needed for RS256, such as "keys.json", and no secret')
        return jwks

    @field_validator("issuer", "audience")
    @classmethod
    def _is_named_or_excused(cls, claim: str | None, given: ValidationInfo) -> str | None:
        name, excuse = given.field_name, f"any_{given.field_name}"
        is_excused = given.data.get(excuse, False)
        if is_excused and claim is not None:
            raise InvalidValue(
                f"has no effect together with {excuse} = true; leave one of them out"
            )
        if not is_excused and not claim:
            raise InvalidValue(
                f"is missing, so that a token which the same key signs for another service would "
                f"be accepted; write the {name} of your tokens, or {excuse} = true"
            )
        return claim

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return _hidden(super().__repr_args__())


class AuthConfig(Section):
    """Whom the server lets in."""

    # Signs watch tokens; at least 32 characters that nobody can guess.
    secret: Secret = None
    tokens: tuple[TokenConfig, ...] = ()
    jwt: JwtConfig | None = None
    # How long the last good settings hold while forge.toml or the JWKS file cannot be read.
    reload_grace: Duration = timedelta(minutes=1)

    @property
    def is_configured(self) -> bool:
        """Whether anybody can log in."""
        return bool(self.tokens) or self.jwt is not None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return _hidden(super().__repr_args__())


def _hidden(arguments: Iterable[tuple[str | None, Any]]) -> Iterable[tuple[str | None, Any]]:
    for name, value in arguments:
        yield name, "***" if name == "secret" and value is not None else value
