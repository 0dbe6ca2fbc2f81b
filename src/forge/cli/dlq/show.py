"""`forge dlq show`."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import BigInteger, json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.dead_letter import DeadLetter


@click.command()
@click.argument("dlq_id", type=BigInteger())
@json_option
@utc_option
@project_options
def show(dlq_id: int, app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Show a dead letter with its payload, and every attempt with its trace."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    letter = run(app, lambda app: _read(app, dlq_id))
    if as_json:
        print_json(asdict(letter))
    else:
        _print(letter)


async def _read(app: "Forge", dlq_id: int) -> "DeadLetter":
    from forge.core.sensitive.shown import shown_letter

    letter = await app.dead_letters.get(dlq_id)
    traces = await _traces(app, letter)
    shown = shown_letter(letter, await app.catalog.sensitive_allowed(letter.job_type))
    attempts = [each | {"trace": traces.get(_attempt_key(each))} for each in shown.attempts or ()]
    return replace(shown, attempts=attempts)


async def _traces(app: "Forge", letter: "DeadLetter") -> dict[Any, str]:
    """Return the traces of the attempts, which are stored with the job."""
    from forge.core.sensitive.shown import shown_attempt
    from forge.store.jobs import attempts

    found = await (await (await app.session()).database()).run(attempts(letter.job_id))
    allowed = await app.catalog.sensitive_allowed(letter.job_type)
    shown = [shown_attempt(row, letter.payload, allowed) for row in found]
    return {_attempt_key(row): row["trace"] for row in shown if row["trace"]}


def _attempt_key(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a key that an attempt of a dead letter shares with that of its job."""
    began = attempt["started_at"]
    started = datetime.fromisoformat(began) if isinstance(began, str) else began
    return attempt["attempt"], attempt["outcome"], started


def _print(letter: "DeadLetter") -> None:
    from forge.cli.output import print_attempt, print_columns

    known = asdict(letter)
    attempts = known.pop("attempts") or ()
    print_columns({k: v for k, v in known.items() if v is not None})
    for attempt in attempts:
        print_attempt(
            attempt | {name: _moment(attempt[name]) for name in ("started_at", "ended_at")}
        )


def _moment(written: str | None) -> datetime | None:
    """Parse a time that a dead letter stores in JSON; None if the job never started."""
    return None if written is None else datetime.fromisoformat(written)
