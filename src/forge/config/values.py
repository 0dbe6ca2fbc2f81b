"""Validators for the values of settings; errors say what is allowed."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Annotated, TypeVar
from urllib.parse import unquote

from pydantic import BeforeValidator

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue

Setting = TypeVar("Setting")


def whole(least: int, most: int) -> Callable[[object], int]:
    """Accept an integer within bounds, as a number or as the text of a variable."""

    def read(value: object) -> int:
        number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
        # bool is a subclass of int, but never a valid number here.
        if type(number) is int and least <= number <= most:
            return number
        raise InvalidValue(f"must be a whole number from {least} to {most}, not {value!r}")

    return read


def duration(value: object) -> timedelta:
    """Accept a duration such as "30s"."""
    return parse_duration(value, what="value")


def moment(value: object) -> datetime:
    """Accept a time with an offset, as a TOML datetime or as text."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if isinstance(found, datetime) and found.utcoffset() is not None:
        return found
    raise InvalidValue(
        f"must be a time with an offset, such as 2027-01-31T12:00:00Z, not {value!s}"
    )


def none_or(word: str, read: Callable[[object], Setting]) -> Callable[[object], Setting | None]:
    """Accept what `read` accepts, or the word that means None in a file."""

    def read_or_none(value: object) -> Setting | None:
        if value is None or value == word:
            return None
        try:
            return read(value)
        except InvalidValue as error:
            raise InvalidValue(f'{error}; "{word}" is allowed too') from None

    return read_or_none


def size(value: object) -> int:
    """Accept a number of bytes, as a number or as text such as "256KB"."""
    written = _SIZE.fullmatch(value) if isinstance(value, str) else None
    count = int(written[1]) * _BYTES[written[2].upper()] if written else value
    if type(count) is int and _BYTES["KB"] <= count <= _MAX_SIZE:
        return count
    raise InvalidValue(
        f'must be a size from 1KB to 255MB, such as 262144, "256KB" or "1MB", not {value!r}'
    )


def names(value: object) -> tuple[str, ...]:
    """Accept a list of names, or text separated by commas."""
    found = _texts(value)
    if found is None:
        raise InvalidValue(f'must be a list of names, such as ["mail", "reports"], not {value!r}')
    return found


def origins(value: object) -> tuple[str, ...]:
    """Accept a list of origins as browsers send them, or text separated by commas."""
    found = _texts(value)
    for origin in (value,) if found is None else found:
        sent = _sent_origin(origin)
        if sent is None:
            raise InvalidValue(
                f'must be a list of origins, such as ["https://shop.example"], not {origin!r}; '
                "name each one: there are no wildcards"
            )
        if sent != origin:
            raise InvalidValue(f"has {origin!r}, which browsers send as {sent!r}; write that")
    return found or ()


def queue_names(value: object) -> tuple[str, ...] | None:
    """Accept the names of at least one queue, or None for all queues."""
    if value is None:
        return None
    if found := names(value):
        return found
    raise InvalidValue("must name a queue; omit it to serve all queues")


def database_url(value: object) -> str | None:
    """Accept the URL of a PostgreSQL database."""
    if value is None or (isinstance(value, str) and _DATABASE_URL.fullmatch(value)):
        return value
    # The error does not quote the value: it may contain a password.
    raise InvalidValue("must be a URL such as postgresql://user:password@host:5432/database")


def filled(value: object) -> str:
    """Accept text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise InvalidValue(f"must be text that is not empty, not {value!r}; or omit it")


def filled_or_none(value: object) -> str | None:
    """Accept text that is not empty, or None."""
    return None if value is None else filled(value)


def trace_url(value: object) -> str | None:
    """Accept the URL of a page that shows a trace."""
    if value is None or (isinstance(value, str) and _TRACE_URL.fullmatch(value)):
        return value
    raise InvalidValue(
        f"must be a URL with {{trace_id}}, such as https://traces.example/trace/{{trace_id}}, not "
        f"{value!r}"
    )


def app_reference(value: object) -> str | None:
    """Accept "module:app", the location of the Forge object."""
    if value is None or (isinstance(value, str) and _APP.fullmatch(value)):
        return value
    raise InvalidValue(f'must be "module:app", such as "shop.jobs:app", not {value!r}')


def signing_secret(value: object) -> str | None:
    """Accept a signing secret that is long enough."""
    if value is None or (isinstance(value, str) and len(value) >= _MIN_SECRET_CHARS):
        return value
    raise InvalidValue(
        f"must have {_MIN_SECRET_CHARS} characters or more; generate one with "
        "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`"
    )


def sha256_hex(value: object) -> str:
    """Accept the SHA-256 of a token, in hex."""
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value.lower()
    # The error does not quote the value: it may be the token itself.
    raise InvalidValue("must be the 64 hex digits that `forge token create` prints, not the token")


def without_password(url: str | None) -> str | None:
    """Return a database URL that is safe to print."""
    if url is None:
        return None
    url = re.sub(r"(?<=[?&])([^=&]+)=([^&]*)", _hide_if_password, url)
    # Up to the last @: a password may contain unescaped : / ? and @.
    return re.sub(r"://([^:@/?#]*):.*@", r"://\1:***@", url)


def _hide_if_password(parameter: re.Match[str]) -> str:
    is_password = "password" in unquote(parameter[1]).lower()
    return f"{parameter[1]}=***" if is_password else parameter[0]


def _texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts, or text separated by commas; None for anything else."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Iterable):
        return None
    found = tuple(text.strip() if isinstance(text, str) else "" for text in given)
    return found if all(found) else None


def _sent_origin(value: object) -> str | None:
    """Return the origin of a URL as browsers send it; None if it names no host."""
    written = _ORIGIN.fullmatch(value.lower()) if isinstance(value, str) else None
    if written is None:
        return None
    scheme, host, port = written["scheme"], written["host"], written["port"]
    is_default = port is None or _DEFAULT_PORTS.get(scheme) == int(port)
    return f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{int(port)}"


_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DIGITS = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(r"([0-9]{1,9}) ?(B|KB|MB|)", re.IGNORECASE)
_BYTES = {"": 1, "B": 1, "KB": 1024, "MB": 1024**2}
# PostgreSQL rejects jsonb values of 256 MB.
_MAX_SIZE = 255 * _BYTES["MB"]
_MIN_SECRET_CHARS = 32
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_TRACE_URL = re.compile(r"https?://[^\s]*\{trace_id\}[^\s]*")
_DATABASE_URL = re.compile(r"postgres(ql)?://\S+")
_APP = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

Duration = Annotated[timedelta, BeforeValidator(duration)]
Origins = Annotated[tuple[str, ...], BeforeValidator(origins)]
Names = Annotated[tuple[str, ...], BeforeValidator(names)]
DatabaseUrl = Annotated[str | None, BeforeValidator(database_url)]
NonEmptyText = Annotated[str, BeforeValidator(filled)]
