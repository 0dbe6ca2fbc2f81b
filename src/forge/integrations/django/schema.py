"""Forge's tables by Django's migrations, on Django's own connection."""

import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from django.apps import apps
from django.db import connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from forge.core.errors import DatabaseUnavailable
from forge.integrations.django.settings import DjangoSettings
from forge.store import job_types, schedule_types
from forge.store.borrowed import run_on, without_loop
from forge.store.borrowed.ledger import apply_on, empty_on, missing_on
from forge.store.migrate import LOCK_RETRY_DELAYS, Migration, all_migrations, script_of

T = TypeVar("T")
LABEL = "forge"
LOCK_NOT_AVAILABLE = "55P03"


class ApplyForge(Operation):
    """Apply one of Forge's SQL migrations, unless `forge migrate` has applied it."""

    reduces_to_sql = True
    reversible = False

    def __init__(self, version: int) -> None:
        self.version = version

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the models as they are now: they are read-only views of the tables."""
        for model in apps.get_app_config(LABEL).get_models():
            if (app_label, model._meta.model_name) not in state.models:
                state.add_model(ModelState.from_model(model))

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.alias != DjangoSettings.current().database:
            return
        (migration,) = (one for one in all_migrations() if one.version == self.version)
        if schema_editor.collect_sql:
            schema_editor.collected_sql.append(script_of(migration))
        else:
            _apply_when_free(schema_editor.connection, migration)

    def describe(self) -> str:
        return f"Apply Forge's migration {self.version:04}"


def after_migrate(using: str, **details: Any) -> None:
    """Register job types and cron schedules after `migrate`; first empty the tables at a flush.

    The command `flush` and TransactionTestCase send the signal without the `plan` of a migration.
    """
    connection = connections[using]
    if using != DjangoSettings.current().database:
        return
    missing = _in_transaction(connection, missing_on(connection))
    if missing and MigrationLoader.migrations_module(LABEL)[0] is None:
        # Migrations are disabled, as by pytest's --nomigrations.
        for migration in missing:
            _apply_when_free(connection, migration)
    elif missing:
        return
    if "plan" not in details:
        _in_transaction(connection, empty_on(connection))
    _in_transaction(connection, _register(connection))


async def _register(connection: Any) -> None:
    from forge.integrations.django.project_app import app

    run = partial(run_on, connection)
    if app.definitions:
        await run(job_types.register([own.job_type for own in app.definitions.values()]))
    if schedules := app.schedule_definitions.values():
        await run(schedule_types.register([own.job_type for own in schedules]))
        await app.schedules.plant(run)


def _apply_when_free(connection: Any, migration: Migration) -> None:
    """Apply a migration with short lock timeouts and retries, so that claims are not blocked."""
    for pause in (*LOCK_RETRY_DELAYS, None):
        try:
            return _in_transaction(connection, apply_on(connection, migration))
        except Exception as error:
            if getattr(error, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
            if pause is None:
                raise DatabaseUnavailable(
                    f"{migration} did not get its locks; end the transactions that use Forge's "
                    "tables, then run `manage.py migrate` again"
                ) from error
            time.sleep(pause)
    raise AssertionError("the last pause is None")


def _in_transaction(connection: Any, work: Coroutine[Any, Any, T]) -> T:
    with transaction.atomic(using=connection.alias):
        return without_loop(connection, work)
