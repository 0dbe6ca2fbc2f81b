"""`forge generate typescript`: types and trackers for the browser, from the app's job types."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import json_option, project_options

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.cli.generate.generated_folder import Difference

WRITTEN = {"missing": "created", "changed": "updated", "obsolete": "removed"}


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--check", "is_check", is_flag=True, help="Write nothing; exit 1 if out of date.")
@click.option(
    "--package",
    "is_package",
    is_flag=True,
    help="Import @forge-jobs/client from npm instead of copying its source to OUT/client.",
)
@json_option
@project_options
def typescript(
    app_option: str | None,
    config_path: Path | None,
    out: Path,
    is_check: bool,
    is_package: bool,
    as_json: bool,
) -> int:
    """Write the types and trackers of the app's job types to the folder OUT.

    OUT/index.ts has a tracker for each job type, for Svelte and plain JavaScript, and OUT/react.ts
    a hook. The app is imported; no database is needed.
    """
    from forge.cli.generate.generated_folder import compare
    from forge.cli.output import print_json
    from forge.cli.project import find_app

    app = find_app(app_option, config_path)
    files, notes = _generate(app, is_package=is_package)
    difference = compare(out, files)
    if not is_check:
        difference.apply()
    if as_json:
        print_json(_report(difference, notes, is_check=is_check))
    else:
        _print(difference, notes, is_check=is_check)
    return 1 if is_check and difference.states else 0


def _generate(app: "Forge", *, is_package: bool) -> tuple[dict[str, str], list[str]]:
    """Return the text of each file by its path in OUT, and notes for the user."""
    from forge.cli.generate.generated_folder import client_source
    from forge.core.typescript.modules import COPIED, PACKAGE, copied_module, generated_modules
    from forge.definitions.job_schemas import describe_jobs

    jobs, definitions, undescribed = describe_jobs(app.definitions.values())
    files = generated_modules(jobs, definitions, PACKAGE if is_package else COPIED)
    if not is_package:
        source = client_source()
        files |= {f"client/{name}": copied_module(text) for name, text in source.items()}
    notes = [f"{what} has no JSON Schema; its type is `unknown`" for what in undescribed]
    if not jobs:
        notes.append("the app has no job types; import the modules that define them")
    return files, notes


def _report(difference: "Difference", notes: list[str], *, is_check: bool) -> dict[str, Any]:
    files = {
        state if is_check else WRITTEN.get(state, state): names
        for state, names in difference.by_state().items()
    }
    return {"out": str(difference.folder), **files, "notes": notes}


def _print(difference: "Difference", notes: list[str], *, is_check: bool) -> None:
    from forge.cli.output import say

    for note in notes:
        say(note, err=True)
    for name, state in difference.states.items():
        say(f"{state if is_check else WRITTEN[state]:<8} {difference.folder / name}")
    if not difference.states:
        say(f"{difference.folder} is up to date")
    elif is_check:
        say(f"{difference.folder} is out of date; run the command again without --check")
