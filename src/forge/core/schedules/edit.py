"""What an edit makes of a schedule. A preview shows what this returns, and an edit writes it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.merge_patch import merge_patch
from forge.core.new_job import check_moment, check_name, parse_priority
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Missed, Rule, first_tick, in_words, jittered, make_rule
from forge.core.schedules.run import rule_of
from forge.core.suggestion import suggestion

# What a definition in code says of its row, beside the rule, and an edit takes over.
DEFINED = ("missed", "jitter", "priority", "worker_capability")
MAX_PREVIEWED = 100
# Fields that always have a value.
REQUIRED = ("tz", "missed", "priority", "next_run_at", "payload", "patch")


class ScheduleChanges(TypedDict, total=False):
    """What `edit` and `preview` change; what is left out stays, None removes it."""

    every: str | timedelta | None
    cron: str | None
    tz: str
    missed: Missed
    jitter: str | timedelta | None
    priority: PriorityLike
    worker_capability: str | None
    timeout: str | timedelta | None
    next_run_at: datetime
    # A new payload, or a JSON merge patch (RFC 7396) of the stored one.
    payload: Any
    patch: Any


@dataclass(frozen=True, slots=True)
class SchedulePreview:
    """What an edit would change, and when the schedule would run then."""

    changed: list[str]
    in_words: str
    next_runs: list[datetime]


def edited(
    row: ScheduleRecord, changes: ScheduleChanges, now: datetime, default: Rule | None = None
) -> ScheduleRecord:
    """Return a schedule with changes, or raise InvalidValue; `default` is the rule of its type.

    Another rule plans the next run again: at its next time, or one interval after the last run.
    """
    check_changes(changes)
    rule = _rule(row, changes)
    after = replace(
        row,
        payload=_payload(row, changes),
        every=rule.every,
        cron=rule.cron,
        tz=rule.tz,
        missed=rule.missed,
        jitter=rule.jitter,
        priority=parse_priority(changes.get("priority", row.priority)),
        worker_capability=_text(row, changes),
        timeout=_span("timeout", changes, row.timeout),
    )
    after = _planned(row, after, changes, now, default)
    return replace(after, edited=sorted({*row.edited, *_defined_fields(row, after)}))


def check_changes(changes: ScheduleChanges) -> None:
    """Refuse changes with an unknown name or without a value that is needed."""
    if unknown := changes.keys() - ScheduleChanges.__annotations__.keys():
        hint = suggestion(min(unknown), ScheduleChanges.__annotations__, "it")
        raise InvalidValue(f"a schedule has no field {min(unknown)!r} to edit; {hint}")
    if "payload" in changes and "patch" in changes:
        raise InvalidValue("an edit has either payload or patch, not both; leave one out")
    for name in REQUIRED:
        if name in changes:
            check_required(name, changes.get(name))


def check_required(name: str, value: object) -> None:
    """Refuse to remove a value that every schedule has."""
    if value is None:
        empty = "; send {} to empty it" if name == "payload" else ""
        raise InvalidValue(f"{name} cannot be null; leave it out to keep it{empty}")


def changed_fields(before: ScheduleRecord, after: ScheduleRecord) -> list[str]:
    """Name the columns in which two states of a schedule differ."""
    names = ("every", "cron", "tz", *DEFINED, "timeout", "next_run_at", "payload")
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def preview(
    before: ScheduleRecord,
    after: ScheduleRecord,
    now: datetime,
    count: int,
    default: Rule | None = None,
) -> SchedulePreview:
    """Return when an edited schedule would run; a disabled one, if it were enabled."""
    rule = rule_of(after, default)
    shown = replace(after, enabled=True, every=rule.every, cron=rule.cron, tz=rule.tz)
    runs = shown.next_runs(now, max(1, min(count, MAX_PREVIEWED)))
    return SchedulePreview(changed_fields(before, after), in_words(rule), runs)


def _rule(row: ScheduleRecord, changes: ScheduleChanges) -> Rule:
    every: str | timedelta | None = changes.get("every", row.every)
    cron = changes.get("cron", row.cron)
    if changes.get("every") is not None and "cron" not in changes:
        cron = None
    if changes.get("cron") is not None and "every" not in changes:
        every = None
    if "tz" in changes and cron is None:
        raise InvalidValue("tz belongs to cron, and this schedule has none; give both")
    return make_rule(
        row.name,
        every,
        cron,
        changes.get("tz", row.tz) if cron is not None else None,
        changes.get("missed", row.missed),
        changes.get("jitter", row.jitter),
    )


def _payload(row: ScheduleRecord, changes: ScheduleChanges) -> Any:
    if "patch" not in changes:
        return changes.get("payload", row.payload)
    if "payload" in row.undecodable:
        raise InvalidValue(
            f"the payload of {row.name} cannot be decoded, so that a patch cannot apply; give a "
            "new payload"
        )
    return merge_patch(row.payload, changes["patch"])


def _text(row: ScheduleRecord, changes: ScheduleChanges) -> str | None:
    name = "worker_capability"
    value = changes.get("worker_capability", row.worker_capability)
    return None if value is None else check_name(value, what=name)


def _span(name: str, changes: ScheduleChanges, known: timedelta | None) -> timedelta | None:
    value: Any = changes.get(name, known)
    return None if value is None else parse_duration(value, what=name)


def _planned(
    before: ScheduleRecord,
    after: ScheduleRecord,
    changes: ScheduleChanges,
    now: datetime,
    default: Rule | None,
) -> ScheduleRecord:
    """Plan the next run again where the edit says so or the rule is another one."""
    if "next_run_at" in changes:
        moment = check_moment(changes["next_run_at"], "next_run_at")
        return replace(after, next_run_at=moment, tick_at=None)
    rule = rule_of(after, default)
    if _when(rule) == _when(rule_of(before, default)) or not rule.has_ticks:
        return after
    tick = _first_tick(before, rule, now)
    due = jittered(rule, after.name, tick)
    return replace(after, next_run_at=due, tick_at=None if due == tick else tick)


def _first_tick(row: ScheduleRecord, rule: Rule, now: datetime) -> datetime:
    if rule.every is None:
        return first_tick(rule, now)
    last = row.running_since or row.last_run_at
    if last is None:
        return max(row.next_run_at or now, now)
    return max(last + rule.every, now)


def _when(rule: Rule) -> tuple[object, ...]:
    return rule.every, rule.cron, rule.tz


def _defined_fields(before: ScheduleRecord, after: ScheduleRecord) -> list[str]:
    """Name what an edit changed of what a definition in code says."""
    changed = changed_fields(before, after)
    is_rule = any(name in changed for name in ("every", "cron", "tz"))
    return [*(name for name in changed if name in DEFINED), *(["rule"] if is_rule else [])]
