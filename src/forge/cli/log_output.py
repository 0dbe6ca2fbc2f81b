"""Where log lines go: to stderr, as text or as JSON."""

import logging

LEVELS = ["debug", "info", "warning", "error", "off"]


def set_up_logging(log_format: str | None, level: str) -> None:
    """Log to stderr, unless the app has set up logging itself and no format was asked for."""
    from forge.telemetry.lines import LineHandler
    from forge.telemetry.logs import JsonFormatter, TextFormatter

    number = (
        logging.CRITICAL + 1 if level == "off" else logging.getLevelNamesMapping()[level.upper()]
    )
    logging.getLogger("forge").setLevel(number)
    if logging.getLogger().handlers and log_format is None:
        return
    handler = LineHandler(is_json=log_format == "json")
    handler.setFormatter(JsonFormatter() if handler.is_json else TextFormatter())
    logging.basicConfig(handlers=[handler], level=number, force=True)
