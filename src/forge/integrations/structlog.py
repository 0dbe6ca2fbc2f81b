"""structlog: the fields of the current attempt in every line."""

from collections.abc import MutableMapping
from typing import Any

from forge.telemetry.logs.attempt_records import CURRENT_JOB, job_fields


def add_attempt(
    logger: Any, method_name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add `job_id`, `job_type`, `attempt` and more to a line that a handler logs.

    A processor for `structlog.configure(processors=[add_attempt, …])`. Fields that the line has
    already are kept, and those without a value are left out.
    """
    job = CURRENT_JOB.get(None)
    if job is not None:
        for name, value in job_fields(job).items():
            if value is not None:
                event.setdefault(name, value if isinstance(value, int) else str(value))
    return event
