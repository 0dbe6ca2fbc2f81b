"""The parameters of a PostgreSQL URL, with the values that Forge accepts."""

import re
from collections.abc import Callable
from typing import NamedTuple

DIGITS = re.compile("[0-9]{1,9}")
_UTF8 = re.compile("utf-?8|unicode|auto", re.IGNORECASE)


class AcceptedValues(NamedTuple):
    """The values that a parameter may have."""

    what: str
    accepts: Callable[[str], bool]


def _one_of(*values: str) -> AcceptedValues:
    return AcceptedValues(" or ".join(values), values.__contains__)


def _only(value: str, *same: str) -> AcceptedValues:
    return AcceptedValues(
        f"{value} or omitted, because Forge supports no other value", (value, *same).__contains__
    )


_ANY = AcceptedValues("text", lambda value: True)
_WHOLE = AcceptedValues("a whole number", lambda value: DIGITS.fullmatch(value) is not None)
_SECONDS = AcceptedValues("a whole number of seconds", lambda value: bool(DIGITS.fullmatch(value)))

PARAMETERS = {
    "service": _ANY,
    "user": _ANY,
    "password": _ANY,
    "passfile": _ANY,
    "channel_binding": _one_of("disable", "prefer"),
    "connect_timeout": _SECONDS,
    "dbname": _ANY,
    "host": _ANY,
    "port": _ANY,
    "client_encoding": AcceptedValues("UTF8", lambda value: _UTF8.fullmatch(value) is not None),
    "options": _ANY,
    "application_name": _ANY,
    "fallback_application_name": _ANY,
    "keepalives": _one_of("0", "1"),
    "keepalives_idle": _SECONDS,
    "keepalives_interval": _SECONDS,
    "keepalives_count": _WHOLE,
    "tcp_user_timeout": AcceptedValues("a whole number of milliseconds", _WHOLE.accepts),
    "sslmode": _one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": _one_of("postgres", "direct"),
    "sslcompression": _only("0"),
    "sslcert": _ANY,
    "sslkey": _ANY,
    "sslcertmode": _only("allow"),
    "sslpassword": _ANY,
    "sslrootcert": AcceptedValues(
        "the path of a file, such as /etc/ssl/certs/ca-certificates.crt",
        lambda value: value != "system",
    ),
    "sslcrl": _ANY,
    "sslsni": _only("1"),
    "min_protocol_version": _only("3.0"),
    "max_protocol_version": _one_of("3.0", "3.2", "latest"),
    "ssl_min_protocol_version": _one_of("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
    "ssl_max_protocol_version": _one_of("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
    "gssencmode": _one_of("disable", "prefer"),
    "krbsrvname": _ANY,
    "gsslib": _ANY,
    "gssdelegation": _only("0"),
    "replication": _only("false", "off", "no", "0"),
    "target_session_attrs": _one_of(
        "any", "read-write", "read-only", "primary", "standby", "prefer-standby"
    ),
    "load_balance_hosts": _one_of("disable", "random"),
}

_DRIVER = "asyncpg has no equivalent: omit it"
UNSUPPORTED = {
    "hostaddr": "use the address as the host",
    "sslcrldir": "set sslcrl to one file",
    "requirepeer": _DRIVER,
    "require_auth": "require the method in pg_hba.conf on the server, and omit it",
    "scram_client_key": "use a password or a passfile",
    "scram_server_key": "use a password or a passfile",
    "oauth_issuer": _DRIVER,
    "oauth_client_id": _DRIVER,
    "oauth_client_secret": _DRIVER,
    "oauth_scope": _DRIVER,
    "sslkeylogfile": "set the environment variable SSLKEYLOGFILE",
}

# libpq's variables for parameters that the URL omits, including those that require protection Forge
# does not support. Variables that asyncpg reads in the same way are left to it.
VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
    "options": "PGOPTIONS",
    "application_name": "PGAPPNAME",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER",
}
