"""Conditions on what jobs contain. They are compared with redacted values, one job at a time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from forge.core.errors import InvalidValue
from forge.core.job import JobRecord
from forge.core.job_filter import InputValue, JobCriteria

MAX_INPUT_VALUES = 10
# Characters of a text, of a path and of a value.
MAX_LENGTH = 200


class SearchCriteria(JobCriteria, total=False):
    """The conditions of a filter and of a search as Python callers write them."""

    q: str | None
    input: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class JobContent:
    """What jobs must contain; None and an empty list mean anything."""

    # A text in the input, the last error or the progress message.
    q: str | None = None
    inputs: tuple[InputValue, ...] = ()

    @classmethod
    def checked(cls, q: object, input: Mapping[str, object] | None) -> Self:
        """Check the conditions, or say what is allowed."""
        if q is not None and (not isinstance(q, str) or not 1 <= len(q) <= MAX_LENGTH):
            raise InvalidValue(f"q must be text of 1 to {MAX_LENGTH} characters, not {q!r:.100}")
        inputs = InputValue.all_of(input or {})
        if len(inputs) > MAX_INPUT_VALUES:
            raise InvalidValue(f"input takes at most {MAX_INPUT_VALUES} values")
        for path, value in inputs:
            if not path or max(len(path), len(value)) > MAX_LENGTH:
                raise InvalidValue(
                    f"input {path[:50]!r}: path and value have from 1 to {MAX_LENGTH} characters"
                )
        return cls(q, tuple(inputs))

    @property
    def is_any(self) -> bool:
        """Whether every job matches."""
        return self.q is None and not self.inputs

    def matches(self, shown: JobRecord) -> bool:
        """Whether a redacted job contains it all."""
        if self.q is not None and not _contains(shown, self.q):
            return False
        return all(value.matches(shown.input) for value in self.inputs)


def _contains(shown: JobRecord, text: str) -> bool:
    said = (json.dumps(shown.input, ensure_ascii=False), shown.last_error, shown.progress_message)
    return any(part is not None and text.casefold() in part.casefold() for part in said)
