"""Exceptions as failures: the error class, the text, and the function that raised."""

import os
import re
import sys
import sysconfig
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType
from typing import TYPE_CHECKING, get_args

from forge.core.errors import DatabaseUnavailable, InvalidValue, UndecodablePayload
from forge.core.outcome import Failure
from forge.core.retry import ErrorClass
from forge.core.signals import ClassifiedError
from forge.core.sqlstate import Blame
from forge.store.connection.blame import blamed
from forge.store.connection.driver_errors import blame

if TYPE_CHECKING:
    import httpx

# Code that is not the application's: the standard library, installed packages, Forge itself.
_PATHS = sysconfig.get_paths()
_FOLDERS = {_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_FORGE = str(Path(__file__).parents[1])
_OTHERS = (*(f"{folder}{os.sep}" for folder in {*_FOLDERS, _FORGE}), "<frozen")


def place_of(error: BaseException) -> str:
    """Return `module:function` of the last frame in the application; empty without a traceback.

    Line numbers are left out: an edit above the function must not change it.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    own = [frame for frame in frames if not _is_others(frame.f_code)]
    chosen = own or frames
    return _named(chosen[-1]) if chosen else ""


def _is_others(code: CodeType) -> bool:
    return code.co_filename.startswith(_OTHERS)


def _named(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str) or module == "__main__":
        module = Path(frame.f_code.co_filename).stem
    return f"{module}:{frame.f_code.co_qualname}"


ERROR_CLASSES = get_args(ErrorClass)
LONGEST_TRACE = 100_000


class Classifier:
    """Gives errors their class: their own, that of `app.classify`, or that of a known exception."""

    def __init__(self) -> None:
        self._own: dict[type[BaseException], str] = {}

    def add(self, exception: type[BaseException], error_class: str) -> None:
        """Give errors of this type an error class."""
        if error_class not in ERROR_CLASSES:
            allowed = ", ".join(ERROR_CLASSES)
            raise InvalidValue(f"an error class is one of {allowed}, not {error_class!r}")
        if not (isinstance(exception, type) and issubclass(exception, BaseException)):
            raise InvalidValue(f"classify takes an exception type, not {exception!r}")
        self._own[exception] = error_class

    def failure(self, error: BaseException) -> Failure:
        """Describe an error as plain text, with its class; never raises, even if its str() does."""
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
        for base in type(error).__mro__:
            if base in self._own:
                return self._own[base]
            if "error_class" in vars(base) and isinstance(error, ClassifiedError):
                return error.error_class  # set on a class nearer than the one the app classified
        if isinstance(error, UndecodablePayload):
            return "non_retryable"  # every attempt would read the same text
        if (response := _response_of(error)) is not None:
            return _class_of_status(response.status_code)
        is_passing = isinstance(error, _PASSING) or blame(error) in _PASSING_BLAME
        return "transient" if is_passing or _is_lost_call(error) else None


# Errors that usually go away: network, database, timeouts.
_PASSING = (TimeoutError, ConnectionError, DatabaseUnavailable)
_PASSING_BLAME = (Blame.PLATFORM, Blame.TRANSIENT)


def clean(text: str) -> str:
    """Escape what PostgreSQL rejects in text: NUL and lone surrogates."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def _name(error: BaseException) -> str:
    module = type(error).__module__
    place = f"{module}." if isinstance(module, str) and module != "builtins" else ""
    return clean(f"{place}{type(error).__qualname__}")


def _response_of(error: BaseException) -> "httpx.Response | None":
    """Return the response of an httpx status error."""
    if not _knows_httpx():
        return None
    import httpx

    return error.response if isinstance(error, httpx.HTTPStatusError) else None


def _is_lost_call(error: BaseException) -> bool:
    """Whether an HTTP call got no response."""
    if not _knows_httpx():
        return False
    import httpx

    return isinstance(error, httpx.TransportError)


def _knows_httpx() -> bool:
    """Whether httpx is imported, so that an error can be one of its own; the import is slow."""
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
        return f"(its text is missing: str() raised {type(raised).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException as raised:
        return f"(its trace is missing: formatting raised {type(raised).__name__})"
