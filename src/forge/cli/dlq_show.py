"""`forge dlq show` and `forge dlq discard`."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.actor import actor
from forge.cli.options import Whole, json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.dead_letter import DeadLetter


@click.command()
@click.argument("dlq_id", type=Whole())
@json_option
@utc_option
@project_options
def show(dlq_id: int, app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Show all that is known of a dead letter: its payload, and every attempt with its trace."""
    from forge.cli.project import find_database, run
    from forge.cli.show import print_json

    app = find_database(app_option, config_path)
    letter = run(app, lambda app: _read(app, dlq_id))
    if as_json:
        print_json(asdict(letter))
    else:
        _print(letter)


async def _read(app: "Forge", dlq_id: int) -> "DeadLetter":
    from forge.allowances import allowance
    from forge.core.shown import shown_letter

    letter = await app.dead_letters.get(dlq_id)
    traces = await _traces(app, letter)
    shown = shown_letter(letter, await allowance(app, letter.job_type))
    attempts = [each | {"trace": traces.get(_place(each))} for each in shown.attempts or ()]
    return replace(shown, attempts=attempts)


async def _traces(app: "Forge", letter: "DeadLetter") -> dict[Any, str]:
    """Return the traces of the job's attempts, which are kept with the job."""
    from forge.allowances import allowance
    from forge.core.shown import shown_attempt
    from forge.store.jobs import attempts

    found = await (await (await app.session()).database()).run(attempts(letter.job_id))
    allowed = await allowance(app, letter.job_type)
    shown = [shown_attempt(row, letter.payload, allowed) for row in found]
    return {_place(row): row["trace"] for row in shown if row["trace"]}


def _place(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an attempt of a dead letter and its record have in common."""
    began = attempt["started_at"]
    started = datetime.fromisoformat(began) if isinstance(began, str) else began
    return attempt["attempt"], attempt["outcome"], started


@click.command()
@click.argument("dlq_id", type=Whole())
@click.option("--notes", help="Why it will not be reprocessed (required); kept with it.")
@json_option
@project_options
def discard(
    dlq_id: int, notes: str | None, app_option: str | None, config_path: Path | None, as_json: bool
) -> None:
    """Close the review of a dead letter without doing it again."""
    from forge.cli.project import find_database, run
    from forge.cli.show import print_either

    app = find_database(app_option, config_path)
    run(app, lambda app: app.dead_letters.discard(dlq_id, notes=notes, actor=actor()))
    print_either(as_json, {"dlq_id": dlq_id, "status": "discarded"}, f"{dlq_id} discarded")


def _print(letter: "DeadLetter") -> None:
    from forge.cli.show import print_attempt, print_columns

    known = asdict(letter)
    attempts = known.pop("attempts") or ()
    print_columns({k: v for k, v in known.items() if v is not None})
    for attempt in attempts:
        print_attempt(
            attempt | {name: _moment(attempt[name]) for name in ("started_at", "ended_at")}
        )


def _moment(written: str | None) -> datetime | None:
    """Read a time that a dead letter keeps in JSON; what expired was never started."""
    return None if written is None else datetime.fromisoformat(written)
