"""Django's migrations: one file per SQL migration, so that `manage.py migrate` applies each."""

from collections.abc import Callable
from functools import partial

from forge.store.migrate import Migration, all_migrations

FOLDER = "src/forge/integrations/django/migrations"
TEXT = '''\
"""Generated from sql/migrations by `make format`."""

from django.db import migrations

from forge.integrations.django.schema import ApplyForge


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = {dependencies}  # noqa: RUF012
    operations = [ApplyForge({version})]  # noqa: RUF012
'''


def django_migration_files() -> dict[str, Callable[[], str]]:
    """Return the files and the functions that write them."""
    every = all_migrations()
    previous = [None, *every]
    return {
        f"{FOLDER}/{migration}.py": partial(_file, migration, before)
        for before, migration in zip(previous, every, strict=False)
    }


def _file(migration: Migration, before: Migration | None) -> str:
    dependencies = "[]" if before is None else f'[("forge", "{before}")]'
    return TEXT.format(dependencies=dependencies, version=migration.version)
