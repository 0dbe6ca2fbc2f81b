"""Parses PostgreSQL URLs as libpq does; unsupported parameters are errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

from forge.core.database_parameters import DIGITS, PARAMETERS, UNSUPPORTED, VARIABLES
from forge.core.errors import ConfigError
from forge.core.suggestion import suggestion

DEFAULT_PORT = 5432
# Where to look for a local server if the URL names no host.
DEFAULT_HOSTS = ("/run/postgresql", "/var/run/postgresql", "/tmp", "localhost")
# libpq's shortest timeout for one host, in seconds.
MIN_TIMEOUT = 2.0


class Host(NamedTuple):
    """One host to connect to: a name, an address or the folder of a socket."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


class TcpOptions(NamedTuple):
    """How the kernel detects a dead peer, in seconds; `user_timeout` in milliseconds."""

    keepalives: bool = True
    idle: int = 30
    interval: int = 5
    probes: int = 3
    user_timeout: int = 15_000


@dataclass(frozen=True)
class ConnectionTarget:
    """Where to connect and how; None leaves a value to the driver."""

    hosts: tuple[Host, ...]
    # The required kind of session: libpq's target_session_attrs.
    session: str = "any"
    is_balanced: bool = False
    # Seconds for each host; None: [database] connect_timeout decides.
    connect_timeout: float | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    passfile: str | None = None
    database: str | None = None
    # Passed to asyncpg as part of a URL.
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_direct_tls: bool = False
    kerberos: Mapping[str, str] = field(default_factory=dict)
    # Session settings sent when connecting.
    settings: Mapping[str, str] = field(default_factory=dict)
    tcp: TcpOptions = field(default_factory=TcpOptions)

    @property
    def place(self) -> str:
        """The database and its hosts, without the login, which may contain a password."""
        hosts = ", ".join(map(str, self.hosts))
        database = self.database or self.user
        if database and "@" in database:
            return "in the URL"  # an unescaped / in a password: part of it was read as the database
        return f'"{database}" at {hosts}' if database else f"at {hosts}"

    def timeout_for_each(self, total: float) -> float:
        """Return the timeout for one host, given the total for all hosts."""
        if self.connect_timeout is not None:
            return self.connect_timeout
        return max(total / len(self.hosts), min(total, MIN_TIMEOUT))

    def suits(self, *, in_recovery: bool, is_read_only: bool) -> bool:
        """Whether a server in this state satisfies target_session_attrs."""
        match self.session:
            case "read-write":
                return not (in_recovery or is_read_only)
            case "read-only":
                return in_recovery or is_read_only
            case "primary":
                return not in_recovery
            case "standby" | "prefer-standby":
                return in_recovery
        return True


def read_url(url: str) -> dict[str, str]:
    """Split a URL into libpq's parameters, without checking their values."""
    match = _URL.fullmatch(url)
    if match is None:
        raise _invalid_url() from None
    # The last @: a password may contain unescaped ones, the name of a host cannot.
    login, _, place = match["place"].rpartition("@")
    user, _, password = login.partition(":")
    found = {"user": user} if user else {}
    if password:
        found["password"] = password
    if place:
        found["host"], found["port"] = _hosts_and_ports(place)
    if match["database"]:
        found["dbname"] = match["database"]
    found = {name: unquote(value) for name, value in found.items()}
    for pair in filter(None, (match["query"] or "").split("&")):
        name, equals, value = pair.partition("=")
        is_known = unquote(name) in PARAMETERS or unquote(name) in UNSUPPORTED
        # With an @ it is probably part of a password with a ?, which must not appear in errors.
        if not equals or ("@" in value and not is_known):
            raise _invalid_url() from None
        found[unquote(name)] = unquote(value)
    return _without_jdbc(found)


def connection_target(
    url: str, env: Mapping[str, str] | None = None, service: Mapping[str, str] | None = None
) -> ConnectionTarget:
    """Parse a URL; omitted parameters come from a service entry, then from PG* variables."""
    given = {**(service or {}), **read_url(url)}
    for name, variable in VARIABLES.items():
        if not given.get(name) and (value := (env or {}).get(variable)):
            given[name] = value
    hosts = _hosts(given)
    _check_parameters(given)
    return ConnectionTarget(
        hosts=hosts,
        session=given.get("target_session_attrs", "any"),
        is_balanced=given.get("load_balance_hosts", "disable") == "random",
        connect_timeout=_connect_timeout(given),
        user=given.get("user"),
        password=given.get("password"),
        passfile=given.get("passfile"),
        database=given.get("dbname"),
        tls={name: given[name] for name in _TLS if name in given},
        is_direct_tls=given.get("sslnegotiation") == "direct",
        kerberos={name: given[name] for name in ("krbsrvname", "gsslib") if name in given},
        settings=_settings(given),
        tcp=_tcp(given),
    )


def with_database(url: str, name: str) -> str:
    """Return the same URL for another database, however the URL names its own."""
    match = _URL.fullmatch(url)
    if match is None:
        raise _invalid_url() from None
    pairs = (match["query"] or "").split("&")
    query = "&".join(pair for pair in pairs if unquote(pair.partition("=")[0]) != "dbname")
    return f"postgresql://{match['place']}/{quote(name)}" + (f"?{query}" if query else "")


def _hosts_and_ports(place: str) -> tuple[str, str]:
    found = [_HOST.fullmatch(each) for each in place.split(",")]
    if not all(found):
        raise _invalid_url() from None
    names = [(each["v6"] or each["name"] or "") for each in found if each]
    ports = [(each["port"] or "") for each in found if each]
    return ",".join(names), ",".join(ports)


def _without_jdbc(given: dict[str, str]) -> dict[str, str]:
    """Accept JDBC's `ssl=true`, as libpq does."""
    if given.get("ssl") == "true":
        del given["ssl"]
        return {"sslmode": "require", **given}
    return given


def _hosts(given: Mapping[str, str]) -> tuple[Host, ...]:
    names = given["host"].split(",") if given.get("host") else list(DEFAULT_HOSTS)
    ports = given.get("port", "").split(",")
    if len(ports) == 1:
        ports *= len(names)
    if len(ports) != len(names):
        raise ConfigError(
            f"the database URL has {len(names)} hosts and {len(ports)} ports; give one port for "
            "all hosts, or one for each"
        )
    if not all(names):
        raise ConfigError(
            "the database URL has an empty name in its list of hosts; name every host"
        )
    return tuple(
        Host(name, _port(port) if port else DEFAULT_PORT)
        for name, port in zip(names, ports, strict=True)
    )


def _port(text: str) -> int:
    # The error does not quote the text: it may be the end of a password.
    if not DIGITS.fullmatch(text) or not 0 < int(text) < 65_536:
        raise _invalid_url() from None
    return int(text)


def _connect_timeout(given: Mapping[str, str]) -> float | None:
    seconds = _whole(given, "connect_timeout", 0)
    return max(float(seconds), MIN_TIMEOUT) if seconds else None


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    found = {name: given[name] for name in ("application_name", "options") if given.get(name)}
    fallback = given.get("fallback_application_name")
    return {"application_name": fallback, **found} if fallback else found


def _tcp(given: Mapping[str, str]) -> TcpOptions:
    default = TcpOptions()
    return TcpOptions(
        given.get("keepalives", "1") != "0",
        _whole(given, "keepalives_idle", default.idle) or default.idle,
        _whole(given, "keepalives_interval", default.interval) or default.interval,
        _whole(given, "keepalives_count", default.probes) or default.probes,
        _whole(given, "tcp_user_timeout", default.user_timeout),
    )


def _whole(given: Mapping[str, str], name: str, default: int) -> int:
    return int(given[name]) if given.get(name) else default


def _check_parameters(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if name in UNSUPPORTED:
            raise ConfigError(
                f"Forge does not support {name} in the database URL; {UNSUPPORTED[name]}"
            )
        if name not in PARAMETERS:
            raise ConfigError(
                f"unknown parameter {name!r} in the database URL; "
                f"{suggestion(name, PARAMETERS, 'it')}; write a server setting as "
                "options=-c%20name%3Dvalue"
            )
        accepted = PARAMETERS[name]
        if value and not accepted.accepts(value):
            raise ConfigError(f"{name} in the database URL must be {accepted.what}, not {value!r}")


def _invalid_url() -> ConfigError:
    # The error quotes no part of the URL: what was read as a port may be the end of a password.
    return ConfigError(
        "the database URL is invalid; write it as "
        "postgresql://user:password@host:5432/database, with %2F for / and %40 for @ in a password"
    )


_URL = re.compile(
    r"postgres(?:ql)?://(?P<place>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL
)
_HOST = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[^:]*))?")

_TLS = (
    "sslmode",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
)
