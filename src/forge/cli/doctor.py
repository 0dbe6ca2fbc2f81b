"""`forge doctor`: checks the installation and prints findings with what to do."""

from pathlib import Path

import click

from forge.cli.options import json_option, project_options


@click.command()
@json_option
@project_options
def doctor(app_option: str | None, config_path: Path | None, as_json: bool) -> int:
    """Check the database, its grants and tables, and that all work has a live worker.

    The exit code is 1 if there is a problem, and 0 if there are only warnings.
    """
    from forge.cli.output import print_findings, print_json
    from forge.cli.project import find_database, run

    findings = run(
        find_database(app_option, config_path), lambda app: app.findings(include_ok=True)
    )
    is_healthy = all(finding.severity != "problem" for finding in findings)
    if as_json:
        print_json({"ok": is_healthy, "findings": findings})
    else:
        print_findings(findings)
    return 0 if is_healthy else 1
