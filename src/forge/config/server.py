"""Settings of the server: where it listens, and who can access it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, field_validator

from forge.config.sources import Section
from forge.config.values import (
    DatabaseUrl,
    Duration,
    NonEmptyText,
    Origins,
    filled_or_none,
    moment,
    sha256_hex,
    signing_secret,
    size,
    trace_url,
    whole,
    without_password,
)
from forge.core.errors import InvalidValue

# Bytes of a request in addition to the input of its job.
ENVELOPE_BYTES = 1024**2
MAX_TENANT_ID = 2**63 - 1

TraceUrl = Annotated[str | None, BeforeValidator(trace_url)]
Secret = Annotated[str | None, BeforeValidator(signing_secret)]


class ServerConfig(Section):
    """Where the server listens, its database login, and its limits."""

    host: NonEmptyText = "127.0.0.1"
    port: Annotated[int, BeforeValidator(whole(0, 65_535))] = 8080
    # The login with role forge_api; without it the server uses [database] url.
    database_url: DatabaseUrl = None
    # None means 1 MB more than max_input.
    max_body: Annotated[int | None, BeforeValidator(lambda v: v if v is None else size(v))] = None
    # Other origins whose pages may open a WebSocket and read responses; the server's own may.
    allowed_origins: Origins = ()
    # Whether every request other than reading is rejected, whatever the caller's roles.
    read_only: bool = False
    # Which priorities callers without the role staff may set: that of the type, or any.
    priorities: Literal["type", "any"] = "type"
    # How many pending jobs a tenant may have before the server rejects more; None is no limit.
    max_pending_per_tenant: Annotated[
        int | None, BeforeValidator(lambda v: v if v is None else whole(1, 100_000)(v))
    ] = None
    # Timeouts for a client to send its headers, send its body, send another request and read a
    # response. Bodies and responses that transfer more than 16 KB a second may take longer.
    header_timeout: Duration = timedelta(seconds=10)
    body_timeout: Duration = timedelta(seconds=30)
    # Longer than the idle timeout of load balancers, so that they close connections first.
    idle_timeout: Duration = timedelta(seconds=75)
    send_timeout: Duration = timedelta(seconds=60)
    max_header_bytes: Annotated[int, BeforeValidator(size)] = 65_536
    # None means as many as the limit of open files allows.
    max_connections: Annotated[
        int | None, BeforeValidator(lambda v: v if v is None else whole(1, 1_000_000)(v))
    ] = None

    def body_limit(self, max_input: int) -> int:
        """Return the maximum size of a request body in bytes."""
        return max_input + ENVELOPE_BYTES if self.max_body is None else self.max_body

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, without_password(value) if name == "database_url" else value


class DashboardConfig(Section):
    """The dashboard that the server shows."""

    enabled: bool = True
    # The environment, such as "production", which every page of the dashboard shows.
    label: Annotated[str | None, BeforeValidator(filled_or_none)] = None
    # The page of a trace, with {trace_id} where its id belongs.
    trace_url: TraceUrl = None


class TokenConfig(Section):
    """One API token: its hash, its owner's name, and its roles."""

    name: str
    sha256: Annotated[str, BeforeValidator(sha256_hex)]
    roles: tuple[Literal["viewer", "user", "staff", "manager"], ...]
    # A token without a tenant belongs to an operator, who sees every tenant's rows.
    tenant_id: Annotated[
        int | None,
        BeforeValidator(lambda v: v if v is None else whole(-MAX_TENANT_ID, MAX_TENANT_ID)(v)),
    ] = None
    expires_at: Annotated[
        datetime | None, BeforeValidator(lambda v: v if v is None else moment(v))
    ] = None

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name.strip():
            raise InvalidValue("must name the owner of the token")
        return name

    @field_validator("roles")
    @classmethod
    def _has_a_role(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if not roles:
            raise InvalidValue('must have a role, such as ["user"]')
        return roles


class JwtConfig(Section):
    """Which JSON Web Tokens are valid, and the names of their claims."""

    algorithm: Literal["HS256", "RS256"]
    secret: Secret = None
    jwks: Path | None = None
    # Declared before issuer and audience, whose validators read them.
    any_issuer: bool = False
    issuer: str | None = None
    any_audience: bool = False
    audience: str | None = None
    roles_claim: NonEmptyText = "roles"
    tenant_claim: NonEmptyText = "tenant_id"
    # Whether a token without the tenant claim belongs to an operator, who sees every tenant's rows.
    operators: bool = False

    @field_validator("jwks")
    @classmethod
    def _has_its_key(cls, jwks: Path | None, given: ValidationInfo) -> Path | None:
        algorithm, secret = given.data.get("algorithm"), given.data.get("secret")
        if algorithm == "HS256" and (jwks is not None or secret is None):
            raise InvalidValue("is for RS256; HS256 needs a secret and no jwks")
        if algorithm == "RS256" and (jwks is None or secret is not None):
            raise InvalidValue('is required for RS256, such as "keys.json", without a secret')
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
                f"is required, because tokens that the same key signs for another service would be "
                f"accepted; set it to the {name} of your tokens, or set {excuse} = true"
            )
        return claim

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return _hidden(super().__repr_args__())


class AuthConfig(Section):
    """Who can access the server."""

    # Signs watch tokens; at least 32 random characters.
    secret: Secret = None
    tokens: tuple[TokenConfig, ...] = ()
    jwt: JwtConfig | None = None
    # How long the last valid settings apply while forge.toml or the JWKS file is unreadable.
    reload_grace: Duration = timedelta(minutes=1)

    @property
    def is_configured(self) -> bool:
        """Whether tokens or JWTs are configured."""
        return bool(self.tokens) or self.jwt is not None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return _hidden(super().__repr_args__())


def _hidden(arguments: Iterable[tuple[str | None, Any]]) -> Iterable[tuple[str | None, Any]]:
    for name, value in arguments:
        yield name, "***" if name == "secret" and value is not None else value
