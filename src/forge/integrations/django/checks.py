"""System checks: mistakes in the settings, with what to do about them."""

import os
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections

from forge.core.errors import ConfigError
from forge.integrations.django.settings import URL_VARIABLE, DjangoSettings, forge_config
from forge.integrations.django.tenants import tenant_function


@register()
def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check FORGE, and the database that it names."""
    try:
        alias = DjangoSettings.current().database
        forge_config()
        tenant_function()
    except ConfigError as error:
        return [Error(problem, id="forge.E001") for problem in error.problems]
    return [*_check_database(alias), *_check_variable()]


def _check_database(alias: str) -> Sequence[CheckMessage]:
    if alias not in settings.DATABASES:
        return [
            Error(
                f"FORGE: DATABASE is {alias!r}, which is not in DATABASES.",
                hint=f"Use one of {', '.join(settings.DATABASES)}.",
                id="forge.E002",
            )
        ]
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return [
            Error(
                f"DATABASES[{alias!r}] is {connection.vendor}, and Forge needs PostgreSQL.",
                hint='Set FORGE["DATABASE"] to the alias of a PostgreSQL database.',
                id="forge.E003",
            )
        ]
    if not _is_psycopg_3():
        return [
            Error(
                "Django uses psycopg2, and Forge needs psycopg 3.",
                hint='Run pip install "forge-jobs[django]"; Django then uses psycopg 3.',
                id="forge.E004",
            )
        ]
    return []


def _check_variable() -> Sequence[CheckMessage]:
    if os.environ.get(URL_VARIABLE):
        return [
            Warning(
                f"{URL_VARIABLE} is set and has no effect: DATABASES names the database.",
                hint="Unset it.",
                id="forge.W001",
            )
        ]
    return []


def _is_psycopg_3() -> bool:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    return bool(is_psycopg3)
