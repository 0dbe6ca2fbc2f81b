"""Write the files that are generated from the code: `python -m tools.generate [--check]`."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tools import dashboard
from tools.diagrams import PICTURES
from tools.django_migrations import django_migration_files
from tools.faults_page import faults_page
from tools.job_columns import job_column_files
from tools.lifecycle_page import lifecycle_page
from tools.node import PackagesMissing
from tools.openapi import openapi_json
from tools.public_api import public_api
from tools.schema import schema_sql, tables_sql

ROOT = Path(__file__).parent.parent
GENERATED: dict[str, Callable[[], str]] = {
    # First: what follows is generated from the statements, too.
    **job_column_files(),
    "src/forge/sql/tables.sql": tables_sql,
    "src/forge/sql/schema.sql": schema_sql,
    **django_migration_files(),
    "docs/reference/lifecycle.md": lifecycle_page,
    "docs/reference/openapi.json": openapi_json,
    "docs/reference/public-api.txt": public_api,
    "tests/faults/README.md": faults_page,
    **PICTURES,
}


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    stale = [name for name, make in GENERATED.items() if not _is_current(name, make(), is_check)]
    try:
        # Last: its types come from openapi.json.
        stale += dashboard.write(is_check)
    except PackagesMissing as missing:
        print(missing, file=sys.stderr)
        if os.environ.get("CI"):
            return 1
    for name in stale:
        print(f"{name} is out of date; run `make format` and commit it")
    return 1 if stale else 0


def _is_current(name: str, text: str, is_check: bool) -> bool:
    path = ROOT / name
    if is_check:
        return path.exists() and path.read_text() == text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


if __name__ == "__main__":
    sys.exit(main())
