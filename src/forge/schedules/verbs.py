"""What can be asked of schedules, on any connection: each verb is given a way to run statements."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue, UnknownSchedule
from forge.core.job import PriorityLike
from forge.core.schedule import Missed, Rule, first_tick, jittered, make_rule
from forge.core.schedule_record import ScheduleRecord, schedule_name
from forge.core.wish import TypeDefaults, check_name, check_tenant, parse_moment, parse_priority
from forge.job_type import JobType
from forge.schedules.definition import ScheduleDefinition
from forge.store import schedules
from forge.store.ids import new_id
from forge.store.schedules import Wanted
from forge.store.statement import Statement

T = TypeVar("T")
LONGEST_KEY = 255
CAPABILITY = "worker_capability"
# What `@cron` says of its row; the timeout it says at each run.
PLANTED = ["rule", "missed", "jitter", "priority", CAPABILITY]


class Ask(Protocol):
    """Runs a statement in some transaction."""

    def __call__(self, statement: Statement[T], /) -> Awaitable[T]: ...


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


class Options(TypedDict, total=False):
    """What `ensure` takes beside name and payload; the rest stays, or is as the type says."""

    next_run_at: datetime
    every: str | timedelta
    cron: str
    tz: str
    missed: Missed
    jitter: str | timedelta
    priority: PriorityLike
    worker_capability: str
    timeout: str | timedelta


class Wish(NamedTuple):
    """What somebody wants of a schedule."""

    name: Name
    payload: Any
    options: Options
    definition: ScheduleDefinition[Any] | None
    # What its payload is held to: the rules of a job without a category.
    kind: JobType
    # Whether its definition says it all: what stands there changes the row, and what does not
    # stand there any more goes from it; but a row that somebody disabled stays so.
    is_planted: bool = False


async def ensure(ask: Ask, wish: Wish) -> ScheduleRecord:
    """See to it that a schedule is there, and as somebody wants it."""
    if unknown := wish.options.keys() - Options.__annotations__.keys():
        allowed = ", ".join(Options.__annotations__)
        raise InvalidValue(f"ensure has no option {min(unknown)!r}; it takes {allowed}")
    rule = _rule(wish, await _row_zone(ask, wish))
    tick = first = parse_moment(wish.options.get("next_run_at"), "next_run_at")
    if first is None and (rule.cron is not None or rule.jitter):
        tick = first_tick(rule, await ask(schedules.now()))
        first = jittered(rule, str(wish.name), tick)
    return await ask(schedules.ensure(_wanted(wish, rule, first, tick)))


async def set_enabled(ask: Ask, name: Name, enabled: bool) -> ScheduleRecord:
    """Enable or disable a schedule."""
    return _found(name, await ask(schedules.enable(await _id(ask, name), enabled)))


async def sync_enabled(ask: Ask, name: Name, query: str, args: tuple[Any, ...]) -> ScheduleRecord:
    """Enable a schedule if a query returns a row, else disable it; needs one transaction for all.

    The lock comes first: whoever enables the schedule at the same time has then either committed,
    and the query sees why, or waits, and enables it after us.
    """
    schedule_id = await _id(ask, name)
    await ask(schedules.lock(schedule_id))
    is_wanted = await ask(schedules.has_any(query, args))
    return _found(name, await ask(schedules.enable(schedule_id, is_wanted)))


async def run_now(ask: Ask, name: Name) -> ScheduleRecord:
    """Make a schedule due at once."""
    found = await ask(schedules.run_now(await _id(ask, name)))
    if found is None:
        raise InvalidValue(f"the schedule {name} is disabled; enable it first")
    return found


async def get(ask: Ask, name: Name) -> ScheduleRecord:
    """Return a schedule as it stands now."""
    return _found(name, await ask(schedules.get(await _id(ask, name))))


async def _id(ask: Ask, name: Name) -> UUID:
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


async def _row_zone(ask: Ask, wish: Wish) -> str | None:
    """Return the time zone of the row where a cron expression comes without one."""
    if "cron" not in wish.options or "tz" in wish.options:
        return None
    found = await ask(schedules.find(*wish.name))
    row = None if found is None else await ask(schedules.get(found))
    return None if row is None else row.tz


def _rule(wish: Wish, row_zone: str | None) -> Rule:
    """Return the rule that was asked for, or that of the type."""
    given = wish.options
    default = Rule() if wish.definition is None else wish.definition.rule
    policies = given.get("missed", default.missed), given.get("jitter", default.jitter)
    what = str(wish.name)
    if "every" in given or "cron" in given:
        tz = given.get("tz") or row_zone or ("cron" in given and default.tz) or None
        return make_rule(what, given.get("every"), given.get("cron"), tz, *policies)
    if "tz" in given:
        raise InvalidValue("tz belongs to cron; give both, or leave tz out")
    return make_rule(what, default.every, default.cron, default.tz, *policies)


def _wanted(wish: Wish, rule: Rule, first: datetime | None, tick: datetime | None) -> Wanted:
    options, name = wish.options, wish.name
    default = TypeDefaults(name.type) if wish.definition is None else wish.definition.defaults
    capability = options.get("worker_capability", default.worker_capability)
    timeout = options.get("timeout")
    return Wanted(
        id=new_id(),
        type=name.type,
        key=name.key,
        tenant_id=name.tenant,
        payload=_payload(wish),
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
        enables=not wish.is_planted,
        given=_given(wish),
    )


def _given(wish: Wish) -> list[str]:
    """Name what was asked for, and so changes a schedule that is there."""
    if wish.is_planted:
        return PLANTED
    given = [*wish.options, *([] if wish.payload is None else ["payload"])]
    return [*given, "rule"] if {"every", "cron"} & wish.options.keys() else given


def _payload(wish: Wish) -> str:
    # Without a payload the row keeps its own, or begins with {}, which the handler may not take.
    return "{}" if wish.payload is None else wish.kind.written(wish.payload)
