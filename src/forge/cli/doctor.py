"""`forge doctor`: what is wrong, and what to do about it."""

from pathlib import Path

import click

from forge.cli.options import json_option, project_options


@click.command()
@json_option
@project_options
def doctor(app_option: str | None, config_path: Path | None, as_json: bool) -> int:
    """Check the database, its grants and its health, and whether all work has a worker.

    The exit code is 1 when there is a problem, and 0 when there are only warnings.
    """
    from forge.cli.checkup import check_up
    from forge.cli.project import find_database, run
    from forge.cli.show import print_findings, print_json

    findings = run(find_database(app_option, config_path), check_up)
    is_well = all(finding.level != "problem" for finding in findings)
    if as_json:
        print_json({"ok": is_well, "findings": findings})
    else:
        print_findings(findings)
    return 0 if is_well else 1
