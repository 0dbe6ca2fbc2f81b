"""Log records of a child process, sent to its worker to be logged there."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from forge.telemetry.logs import ORDINARY, TextFormatter


class RecordSender(logging.Handler):
    """Sends each record as a message, with the fields of the attempt that runs."""

    def __init__(self, send: Callable[[dict[str, Any]], None], attempt: Mapping[str, Any]) -> None:
        super().__init__()
        self._send = send
        self._attempt = {name: _plain(value) for name, value in attempt.items()}
        self._formatter = TextFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send({"log": self._fields(record)})
        except Exception:
            self.handleError(record)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        extra = {k: _plain(v) for k, v in record.__dict__.items() if k not in ORDINARY}
        trace = self._formatter.formatException(record.exc_info) if record.exc_info else None
        return {
            **self._attempt,
            **extra,
            "name": record.name,
            "msg": record.getMessage(),
            "levelno": record.levelno,
            "levelname": record.levelname,
            "created": record.created,
            "process": record.process,
            "exc_text": trace,
        }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
