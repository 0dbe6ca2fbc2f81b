"""What an exception means: its class, its text and its place, as plain text."""

import re
import sys
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, get_args

from forge.core.errors import DatabaseUnavailable, InvalidValue, UndecodablePayload
from forge.core.outcome import Failure
from forge.core.retry import ErrorClass
from forge.core.signals import ClassifiedError
from forge.core.sqlstate import Blame
from forge.places import place_of
from forge.store.fault import blame
from forge.store.loss import blamed

if TYPE_CHECKING:
    import httpx

ERROR_CLASSES = get_args(ErrorClass)
LONGEST_TRACE = 100_000


class Classifier:
    """Knows how errors are to be retried: those that say so, the well-known, and the app's own."""

    def __init__(self) -> None:
        self._own: dict[type[BaseException], str] = {}

    def add(self, exception: type[BaseException], error_class: str) -> None:
        """Say how errors of this type are to be retried."""
        if error_class not in ERROR_CLASSES:
            allowed = ", ".join(ERROR_CLASSES)
            raise InvalidValue(f"an error class is one of {allowed}, not {error_class!r}")
        if not (isinstance(exception, type) and issubclass(exception, BaseException)):
            raise InvalidValue(f"classify takes an exception type, not {exception!r}")
        self._own[exception] = error_class

    def failure(self, error: BaseException) -> Failure:
        """Describe an error; whatever its own code does, this does not raise."""
        exception = _name(error)
        whose = blamed(error)
        return Failure(
            exception,
            clean(_text(error) or exception),
            clean(_trace(error)[-LONGEST_TRACE:]),
            self._class_of(error),
            _retry_after(error),
            clean(place_of(error)),
            is_loss=whose is Blame.PLATFORM,
            is_loss_if_read_only=whose is Blame.PLATFORM_IF_READ_ONLY,
        )

    def _class_of(self, error: BaseException) -> str | None:
        for kind in type(error).__mro__:
            if kind in self._own:
                return self._own[kind]
            if "error_class" in vars(kind) and isinstance(error, ClassifiedError):
                return error.error_class  # it says so itself, and nearer than the app does
        if isinstance(error, UndecodablePayload):
            return "non_retryable"  # the stored text stays as it is
        if (response := _response_of(error)) is not None:
            return _class_of_status(response.status_code)
        is_passing = isinstance(error, _PASSING) or blame(error) in _PASSING_BLAME
        return "transient" if is_passing or _is_lost_call(error) else None


# What goes away by itself: the network's, the database's, and the clock's.
_PASSING = (TimeoutError, ConnectionError, DatabaseUnavailable)
_PASSING_BLAME = (Blame.PLATFORM, Blame.TRANSIENT)


def clean(text: str) -> str:
    """Return text that PostgreSQL takes: no NUL, no lone surrogates."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def _name(error: BaseException) -> str:
    module = type(error).__module__
    place = f"{module}." if isinstance(module, str) and module != "builtins" else ""
    return clean(f"{place}{type(error).__qualname__}")


def _response_of(error: BaseException) -> "httpx.Response | None":
    """Return the answer that was an error of HTTP."""
    if not _knows_httpx():
        return None
    import httpx

    return error.response if isinstance(error, httpx.HTTPStatusError) else None


def _is_lost_call(error: BaseException) -> bool:
    """Whether a call over HTTP was not answered."""
    if not _knows_httpx():
        return False
    import httpx

    return isinstance(error, httpx.TransportError)


def _knows_httpx() -> bool:
    """Whether an error can be one of httpx, which takes long to import for nothing."""
    return "httpx" in sys.modules


def _class_of_status(status: int) -> str | None:
    if status == 429:
        return "rate_limited"
    return "transient" if status >= 500 else None


def _retry_after(error: BaseException) -> timedelta | None:
    if isinstance(error, ClassifiedError):
        return error.retry_after
    if (response := _response_of(error)) is None:
        return None
    header = response.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(header):
        return timedelta(seconds=min(int(header), 365 * 86400))
    try:
        return max(parsedate_to_datetime(header) - datetime.now(UTC), timedelta(0))
    except (TypeError, ValueError, OverflowError):
        return None


_SECONDS = re.compile(r"[0-9]{1,9}")


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as raised:
        return f"(its text cannot be had: str() raised {type(raised).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException as raised:
        return f"(its trace cannot be had: formatting raised {type(raised).__name__})"
