"""assert_dispatched and its opposite: what was expected, and what was there instead."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from forge.app import Forge
from forge.core.duration import approximate, format_duration, parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import BUILTIN_QUEUE, JobRecord
from forge.core.new_job import parse_priority
from forge.core.payload import decode
from forge.core.suggestion import suggestion
from forge.definitions.job import JobDefinition
from forge.testing.must_await import must_be_awaited
from forge.testing.runs import acting

Job = JobDefinition[Any, Any] | str
# How many jobs a message shows, and how many are read at most.
SHOWN, MOST_READ = 10, 10_000
COLUMNS = tuple(field.name for field in fields(JobRecord))
_MISSING = object()


class Near:
    """Equals every time that is at most a span away from another; see `within`."""

    def __init__(self, span: timedelta, of: datetime | timedelta | None) -> None:
        self._span = span
        self._of = of

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, datetime):
            return NotImplemented
        now = datetime.now(UTC)
        middle = now + self._of if isinstance(self._of, timedelta) else self._of or now
        return abs(other - middle) <= self._span

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        span = format_duration(self._span)
        match self._of:
            case None:
                return f"within({span!r})"
            case timedelta():
                return f"within({span!r}, of={format_duration(self._of)!r})"
        return f"within({span!r}, of={self._of.isoformat()})"


def within(span: timedelta | str, *, of: datetime | timedelta | str | None = None) -> Near:
    """Return what equals every time at most `span` away from now, or from `of`.

    `of` is a moment, or a duration from now: `scheduled_at=within("1m", of="2h")`.
    """
    if of is not None and not isinstance(of, datetime):
        of = parse_duration(of, what="of", allow_zero=True)
    return Near(parse_duration(span, what="within"), of)


@must_be_awaited
async def assert_dispatched(
    app: Forge,
    job: Job,
    input: Any = None,
    *,
    times: int | None = None,
    conn: Any = None,
    **columns: Any,
) -> list[JobRecord]:
    """Assert that a job was dispatched, exactly `times` if given; return the matching jobs.

    Of a dict as `input` only the keys that it has are compared, of a model all fields. `columns`
    are those of a job: scheduled_at, priority, queue, tenant_id, tags, status …
    """
    wanted = _Expectation.of(job, input, columns)
    found = await _jobs(app, conn)
    matching = [record for record in found if wanted.matches(record)]
    if matching if times is None else len(matching) == times:
        return matching
    raise AssertionError(_message(wanted, found, len(matching), times))


@must_be_awaited
async def assert_not_dispatched(
    app: Forge, job: Job, input: Any = None, *, conn: Any = None, **columns: Any
) -> None:
    """Assert that no such job was dispatched."""
    wanted = _Expectation.of(job, input, columns)
    found = await _jobs(app, conn)
    if matching := [record for record in found if wanted.matches(record)]:
        shown = "\n".join(_lines(wanted, matching))
        raise AssertionError(f"expected no job {wanted}, but there {_are(len(matching))}:\n{shown}")


@must_be_awaited
async def dispatched(app: Forge, job: Job | None = None, *, conn: Any = None) -> list[JobRecord]:
    """Return the jobs of a type, or all but built-in ones, oldest first, whatever their status."""
    found = await _jobs(app, conn)
    return [record for record in found if job is None or record.job_type == _name(job)]


@dataclass(frozen=True)
class _Expectation:
    name: str
    input: Any
    # Whether an input with more keys differs.
    is_whole: bool
    columns: Mapping[str, Any]

    @classmethod
    def of(cls, job: Job, input: Any, columns: dict[str, Any]) -> "_Expectation":
        for name in columns:
            if name not in COLUMNS:
                hint = suggestion(name, COLUMNS, "a job")
                raise InvalidValue(f"a job has no column {name!r}; {hint}")
        if "priority" in columns:
            columns = columns | {"priority": parse_priority(columns["priority"])}
        is_whole = input is not None and not isinstance(input, dict)
        return cls(_name(job), _plain(job, input) if is_whole else input, is_whole, columns)

    def matches(self, record: JobRecord) -> bool:
        return record.job_type == self.name and not self.differences(record)

    def differences(self, record: JobRecord) -> list[str]:
        """Return what is different about a job, one line each."""
        found = []
        if self.input is not None:
            found = _differing(self.input, record.input, "input", is_whole=self.is_whole)
        for name, expected in self.columns.items():
            found += _differing(expected, getattr(record, name), name, is_whole=True)
        return found

    def __str__(self) -> str:
        given = [] if self.input is None else [f"input={self.input!r}"]
        given += [f"{name}={value!r}" for name, value in self.columns.items()]
        return f"{self.name}({', '.join(given)})"


def _name(job: Job) -> str:
    if isinstance(job, str | JobDefinition):
        return job if isinstance(job, str) else job.name
    raise InvalidValue(f"it takes a job or the name of one, not {job!r}")


def _plain(job: Job, input: Any) -> Any:
    """Return an input as it is stored."""
    if isinstance(job, JobDefinition):
        return decode(job.encode_input(input))
    return input.model_dump(mode="json") if isinstance(input, BaseModel) else input


async def _jobs(app: Forge, conn: Any) -> list[JobRecord]:
    """Read the jobs of an app, oldest first, without built-in ones."""
    found: list[JobRecord] = []
    cursor: UUID | None = None
    async with acting(app, conn):
        while len(found) < MOST_READ:
            page = await app.list_jobs(limit=1000, cursor=cursor)
            found += page.items
            if (cursor := page.next_cursor) is None:
                break
    return [record for record in reversed(found) if record.queue != BUILTIN_QUEUE]


def _differing(expected: Any, value: Any, path: str, *, is_whole: bool) -> list[str]:
    if isinstance(expected, dict) and isinstance(value, dict):
        others = value.keys() - expected.keys() if is_whole else ()
        return [
            line
            for key in (*expected, *others)
            for line in _differing(
                expected.get(key, _MISSING),
                value.get(key, _MISSING),
                f"{path}.{key}",
                is_whole=is_whole,
            )
        ]
    # On the left, so that a matcher such as within() or mock.ANY decides.
    if expected == value:
        return []
    if value is _MISSING:
        return [f"{path} is missing, expected {expected!r}"]
    if expected is _MISSING:
        return [f"{path} is {value!r}, expected no such key"]
    return [f"{path} is {_shown(value)}, expected {expected!r}"]


def _message(
    wanted: _Expectation, found: Sequence[JobRecord], matching: int, times: int | None
) -> str:
    same = [record for record in found if record.job_type == wanted.name]
    head = f"expected job {wanted}"
    if times is not None:
        head += f" {times}×, found {matching}×"
    if not same:
        lines = [f"no {wanted.name} was dispatched"]
    else:
        lines = [f"there {_are(len(same))} of {wanted.name}:", *_lines(wanted, same)]
    others = Counter(record.job_type for record in found if record.job_type != wanted.name)
    if others:
        lines.append("other jobs: " + ", ".join(f"{name} {n}×" for name, n in others.items()))
    elif not same:
        lines.append("there are no other jobs either; dispatches in a transaction need conn=")
    return "\n".join([head, *lines])


def _are(number: int) -> str:
    return "is 1" if number == 1 else f"are {number}"


def _lines(wanted: _Expectation, records: Sequence[JobRecord]) -> list[str]:
    lines = []
    for number, record in enumerate(records[:SHOWN], 1):
        lines.append(
            f"  {number}. input={record.input!r} scheduled_at={_shown(record.scheduled_at)} "
            f"priority={record.priority} queue={record.queue} status={record.status}"
        )
        lines += [f"     {difference}" for difference in wanted.differences(record)]
    if len(records) > SHOWN:
        lines.append(f"  … and {len(records) - SHOWN} more")
    return lines


def _shown(value: Any) -> str:
    if not isinstance(value, datetime):
        return repr(value)
    away = (value - datetime.now(UTC)).total_seconds()
    span = approximate(abs(away))
    return f"{value.isoformat(timespec='seconds')} ({f'in {span}' if away > 0 else f'{span} ago'})"
