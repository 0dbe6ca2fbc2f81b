"""The verbs of schedules on any connection: each receives a way to run statements."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue, UnknownSchedule
from forge.core.job import PriorityLike
from forge.core.job_type import JobType
from forge.core.new_job import check_name, check_tenant, parse_moment, parse_priority
from forge.core.schedules.record import ScheduleRecord, schedule_name
from forge.core.schedules.rule import Missed, Rule, first_tick, jittered, make_rule
from forge.definitions.catalog import RunStatement
from forge.definitions.input_encoder import InputEncoder
from forge.definitions.schedule import ScheduleDefinition
from forge.store import schedules
from forge.store.ids import new_id
from forge.store.schedules import ScheduleValues

LONGEST_KEY = 255
CAPABILITY = "worker_capability"
# What `@cron` says of its row; the timeout it says at each run.
PLANTED = ["rule", "missed", "jitter", "priority", CAPABILITY]


class Name(NamedTuple):
    """What names a schedule."""

    type: str
    key: str = ""
    tenant: int | None = None

    def __str__(self) -> str:
        return schedule_name(*self)


def named(type: str | ScheduleDefinition[Any], key: object, tenant: object) -> Name:
    """Check the name of a schedule."""
    text = type.name if isinstance(type, ScheduleDefinition) else type
    checked = "" if key == "" else check_name(key, what="key", longest=LONGEST_KEY)
    return Name(check_name(text, what="type"), checked, check_tenant(tenant))


class ScheduleOptions(TypedDict, total=False):
    """The options of `ensure`; one that is left out keeps its value or the type's default."""

    next_run_at: datetime
    every: str | timedelta
    cron: str
    tz: str
    missed: Missed
    jitter: str | timedelta
    priority: PriorityLike
    worker_capability: str
    timeout: str | timedelta


class NewSchedule(NamedTuple):
    """A schedule to create or change."""

    name: Name
    payload: Any
    options: ScheduleOptions
    definition: ScheduleDefinition[Any] | None
    # Checks its payload by the rules of a job without a category.
    encoder: InputEncoder
    # Whether the row follows its definition in everything, except that a disabled row stays
    # disabled.
    is_planted: bool = False


async def ensure(ask: RunStatement, new_job: NewSchedule) -> ScheduleRecord:
    """Create a schedule, or change the one that exists."""
    if unknown := new_job.options.keys() - ScheduleOptions.__annotations__.keys():
        allowed = ", ".join(ScheduleOptions.__annotations__)
        raise InvalidValue(f"ensure has no option {min(unknown)!r}; it takes {allowed}")
    rule = _rule(new_job, await _row_zone(ask, new_job))
    tick = first = parse_moment(new_job.options.get("next_run_at"), "next_run_at")
    if first is None and (rule.cron is not None or rule.jitter):
        tick = first_tick(rule, await ask(schedules.now()))
        first = jittered(rule, str(new_job.name), tick)
    return await ask(schedules.ensure(_wanted(new_job, rule, first, tick)))


async def set_enabled(ask: RunStatement, name: Name, enabled: bool) -> ScheduleRecord:
    """Enable or disable a schedule."""
    return _found(name, await ask(schedules.enable(await id_of(ask, name), enabled)))


async def sync_enabled(
    ask: RunStatement, name: Name, query: str, args: tuple[Any, ...]
) -> ScheduleRecord:
    """Enable a schedule if a query returns a row, else disable it; needs one transaction for all.

    The lock comes first: a concurrent transaction that enables the schedule has then either
    committed, and the query sees its rows, or waits, and enables it after this one.
    """
    schedule_id = await id_of(ask, name)
    await ask(schedules.lock(schedule_id))
    is_wanted = await ask(schedules.has_any(query, args))
    return _found(name, await ask(schedules.enable(schedule_id, is_wanted)))


async def run_now(ask: RunStatement, name: Name) -> ScheduleRecord:
    """Make a schedule due at once."""
    found = await ask(schedules.run_now(await id_of(ask, name)))
    if found is None:
        raise InvalidValue(f"the schedule {name} is disabled; enable it first")
    return found


async def get(ask: RunStatement, name: Name) -> ScheduleRecord:
    """Return the current state of a schedule."""
    return _found(name, await ask(schedules.get(await id_of(ask, name))))


async def id_of(ask: RunStatement, name: Name) -> UUID:
    """Return the id of a schedule, or raise UnknownSchedule."""
    found = await ask(schedules.find(*name))
    if found is None:
        raise _unknown(name)
    return found


def _found(name: Name, record: ScheduleRecord | None) -> ScheduleRecord:
    if record is None:
        raise _unknown(name)
    return record


def _unknown(name: Name) -> UnknownSchedule:
    return UnknownSchedule(
        f"there is no schedule {name}",
        f"make it with app.schedules.ensure({name.type!r}, {name.key!r})",
    )


async def _row_zone(ask: RunStatement, new_job: NewSchedule) -> str | None:
    """Return the time zone of the row where a cron expression comes without one."""
    if "cron" not in new_job.options or "tz" in new_job.options:
        return None
    found = await ask(schedules.find(*new_job.name))
    row = None if found is None else await ask(schedules.get(found))
    return None if row is None else row.tz


def _rule(new_job: NewSchedule, row_zone: str | None) -> Rule:
    """Return the rule of the options, or that of the type."""
    given = new_job.options
    default = Rule() if new_job.definition is None else new_job.definition.rule
    policies = given.get("missed", default.missed), given.get("jitter", default.jitter)
    what = str(new_job.name)
    if "every" in given or "cron" in given:
        tz = given.get("tz") or row_zone or ("cron" in given and default.tz) or None
        return make_rule(what, given.get("every"), given.get("cron"), tz, *policies)
    if "tz" in given:
        raise InvalidValue("tz belongs to cron; give both, or leave tz out")
    return make_rule(what, default.every, default.cron, default.tz, *policies)


def _wanted(
    new_job: NewSchedule, rule: Rule, first: datetime | None, tick: datetime | None
) -> ScheduleValues:
    options, name = new_job.options, new_job.name
    default = JobType(name.type) if new_job.definition is None else new_job.definition.job_type
    capability = options.get("worker_capability", default.worker_capability)
    timeout = options.get("timeout")
    return ScheduleValues(
        id=new_id(),
        type=name.type,
        key=name.key,
        tenant_id=name.tenant,
        payload=_payload(new_job),
        next_run_at=first,
        tick_at=None if tick == first else tick,
        every=rule.every,
        cron=rule.cron,
        tz=rule.tz,
        missed=rule.missed,
        jitter=rule.jitter,
        priority=parse_priority(options.get("priority", default.priority)),
        worker_capability=None if capability is None else check_name(capability, what=CAPABILITY),
        timeout=None if timeout is None else parse_duration(timeout, what="timeout"),
        enables=not new_job.is_planted,
        given=_given(new_job),
    )


def _given(new_job: NewSchedule) -> list[str]:
    """Name the options that change a schedule that exists."""
    if new_job.is_planted:
        return PLANTED
    given = [*new_job.options, *([] if new_job.payload is None else ["payload"])]
    return [*given, "rule"] if {"every", "cron"} & new_job.options.keys() else given


def _payload(new_job: NewSchedule) -> str:
    # Without a payload the row keeps its own, or starts with {}, which the handler may not accept.
    return "{}" if new_job.payload is None else new_job.encoder.encode_and_warn(new_job.payload)
