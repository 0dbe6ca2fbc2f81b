"""A PostgreSQL URL as libpq reads it: every parameter is used or refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

from forge.core.database_parameters import DIGITS, PARAMETERS, UNSUPPORTED, VARIABLES
from forge.core.errors import ConfigError
from forge.core.suggestion import suggestion

DEFAULT_PORT = 5432
# Where a server on this machine is looked for when no host is named.
DEFAULT_PLACES = ("/run/postgresql", "/var/run/postgresql", "/tmp", "localhost")
# libpq's shortest timeout for one host, in seconds.
SHORTEST_TIMEOUT = 2.0


class Host(NamedTuple):
    """One place to connect to: a name, an address or the folder of a socket."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


class TcpOptions(NamedTuple):
    """How the kernel notices a dead peer: seconds, and milliseconds for `user_timeout`."""

    keepalives: bool = True
    idle: int = 30
    interval: int = 5
    probes: int = 3
    user_timeout: int = 15_000


@dataclass(frozen=True)
class ConnectionTarget:
    """Where to connect and how; None leaves a value to the driver."""

    hosts: tuple[Host, ...]
    # The kind of session that is wanted: libpq's target_session_attrs.
    session: str = "any"
    is_balanced: bool = False
    # Seconds for each host; None: [database] connect_timeout decides.
    connect_timeout: float | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    passfile: str | None = None
    database: str | None = None
    # What asyncpg reads from a URL itself.
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_direct_tls: bool = False
    kerberos: Mapping[str, str] = field(default_factory=dict)
    # What the server is to set at the start of a session.
    settings: Mapping[str, str] = field(default_factory=dict)
    tcp: TcpOptions = field(default_factory=TcpOptions)

    @property
    def place(self) -> str:
        """Name the database and its hosts; never the login, which may hold a password."""
        hosts = ", ".join(map(str, self.hosts))
        database = self.database or self.user
        if database and "@" in database:
            return "in the URL"  # a password with a / in it was taken for hosts and a database
        return f'"{database}" at {hosts}' if database else f"at {hosts}"

    def timeout_for_each(self, total: float) -> float:
        """Return the seconds that one host may take of those that all may take."""
        if self.connect_timeout is not None:
            return self.connect_timeout
        return max(total / len(self.hosts), min(total, SHORTEST_TIMEOUT))

    def suits(self, *, in_recovery: bool, is_read_only: bool) -> bool:
        """Whether a server in this state is of the kind that is wanted."""
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
    """Split a URL into libpq's parameters; their values are not judged."""
    match = _URL.fullmatch(url)
    if match is None:
        raise _unreadable() from None
    # The last @: a password may hold others that were not escaped, the name of a host may not.
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
        # With an @ it is more likely a password that has a ? in it, whose parts nobody may read.
        if not equals or ("@" in value and not is_known):
            raise _unreadable() from None
        found[unquote(name)] = unquote(value)
    return _without_jdbc(found)


def connection_target(
    url: str, env: Mapping[str, str] | None = None, service: Mapping[str, str] | None = None
) -> ConnectionTarget:
    """Read a URL; what it leaves out comes from a service's entry, then from PG* variables."""
    given = {**(service or {}), **read_url(url)}
    for name, variable in VARIABLES.items():
        if not given.get(name) and (value := (env or {}).get(variable)):
            given[name] = value
    hosts = _hosts(given)
    _refuse_unusable(given)
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
    """Return the same URL for another database, whichever way it names its own."""
    match = _URL.fullmatch(url)
    if match is None:
        raise _unreadable() from None
    pairs = (match["query"] or "").split("&")
    query = "&".join(pair for pair in pairs if unquote(pair.partition("=")[0]) != "dbname")
    return f"postgresql://{match['place']}/{quote(name)}" + (f"?{query}" if query else "")


def _hosts_and_ports(place: str) -> tuple[str, str]:
    found = [_HOST.fullmatch(each) for each in place.split(",")]
    if not all(found):
        raise _unreadable() from None
    names = [(each["v6"] or each["name"] or "") for each in found if each]
    ports = [(each["port"] or "") for each in found if each]
    return ",".join(names), ",".join(ports)


def _without_jdbc(given: dict[str, str]) -> dict[str, str]:
    """Take JDBC's `ssl=true`, as libpq does."""
    if given.get("ssl") == "true":
        del given["ssl"]
        return {"sslmode": "require", **given}
    return given


def _hosts(given: Mapping[str, str]) -> tuple[Host, ...]:
    names = given["host"].split(",") if given.get("host") else list(DEFAULT_PLACES)
    ports = given.get("port", "").split(",")
    if len(ports) == 1:
        ports *= len(names)
    if len(ports) != len(names):
        raise ConfigError(
            f"the URL of the database has {len(names)} hosts and {len(ports)} ports; give one port "
            "for all hosts, or one for each"
        )
    if not all(names):
        raise ConfigError(
            "the URL of the database has an empty name in its list of hosts; name every host"
        )
    return tuple(
        Host(name, _port(port) if port else DEFAULT_PORT)
        for name, port in zip(names, ports, strict=True)
    )


def _port(text: str) -> int:
    # The text is not repeated: it may be the end of a password.
    if not DIGITS.fullmatch(text) or not 0 < int(text) < 65_536:
        raise _unreadable() from None
    return int(text)


def _connect_timeout(given: Mapping[str, str]) -> float | None:
    seconds = _whole(given, "connect_timeout", 0)
    return max(float(seconds), SHORTEST_TIMEOUT) if seconds else None


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    found = {name: given[name] for name in ("application_name", "options") if given.get(name)}
    fallback = given.get("fallback_application_name")
    return {"application_name": fallback, **found} if fallback else found


def _tcp(given: Mapping[str, str]) -> TcpOptions:
    usual = TcpOptions()
    return TcpOptions(
        given.get("keepalives", "1") != "0",
        _whole(given, "keepalives_idle", usual.idle) or usual.idle,
        _whole(given, "keepalives_interval", usual.interval) or usual.interval,
        _whole(given, "keepalives_count", usual.probes) or usual.probes,
        _whole(given, "tcp_user_timeout", usual.user_timeout),
    )


def _whole(given: Mapping[str, str], name: str, usual: int) -> int:
    return int(given[name]) if given.get(name) else usual


def _refuse_unusable(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if name in UNSUPPORTED:
            raise ConfigError(
                f"Forge does not support {name} in the URL of the database; {UNSUPPORTED[name]}"
            )
        if name not in PARAMETERS:
            raise ConfigError(
                f"unknown parameter {name!r} in the URL of the database; "
                f"{suggestion(name, PARAMETERS, 'it')}; a setting of the server is written "
                "options=-c%20name%3Dvalue"
            )
        takes = PARAMETERS[name]
        if value and not takes.accepts(value):
            raise ConfigError(
                f"{name} in the URL of the database must be {takes.what}, not {value!r}"
            )


def _unreadable() -> ConfigError:
    # Nothing of the URL is repeated: what was read as a port may be the end of a password.
    return ConfigError(
        "the URL of the database cannot be read; write it as "
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
