"""Rules in plain words, for people."""

from datetime import timedelta

from cronsim import CronSim, CronSimError

from forge.core.cron import SOME_DAY
from forge.core.schedule import Rule

UNITS = (
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
    (timedelta(milliseconds=1), "millisecond"),
)


def in_words(rule: Rule) -> str:
    """Say when a schedule runs.

    >>> in_words(Rule(cron="0 3 * * 1-5", tz="Europe/Paris"))
    'at 03:00 on Monday through Friday, Europe/Paris time'
    >>> in_words(Rule(every=timedelta(minutes=90)))
    'every 90 minutes'
    """
    if rule.cron is not None:
        return f"{cron_in_words(rule.cron)}, {rule.tz}{'' if rule.tz == 'UTC' else ' time'}"
    if rule.every is not None:
        return span_in_words(rule.every)
    return "when its handler says"


def cron_in_words(expression: str) -> str:
    """Say which moments an expression names."""
    try:
        said = CronSim(expression, SOME_DAY).explain()
    except CronSimError:
        return f"never: {expression!r} is not a cron expression"
    return said[0].lower() + said[1:]


def span_in_words(every: timedelta) -> str:
    """Say how often something happens."""
    for unit, name in UNITS:
        count, rest = divmod(every, unit)
        if count and not rest:
            return f"every {name}" if count == 1 else f"every {count} {name}s"
    return f"every {every.total_seconds():g} seconds"
