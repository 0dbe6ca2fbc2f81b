"""Forge in Django (extra `django`): add "forge.integrations.django" to INSTALLED_APPS.

`from forge.integrations.django import app` is the project's app: its settings are `FORGE`, its
database is one of `DATABASES`, and it has the jobs of each installed app's `jobs.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.integrations.django.task_backend import ForgeBackend
    from forge.integrations.django.task_definitions import job_options
    from forge.integrations.django.tenants import TenantMiddleware

    app: Forge

# Where the public names are: they are imported when they are used, because Django imports this
# package before its settings and models are ready.
_NAMES = {
    "ForgeBackend": "forge.integrations.django.task_backend",
    "TenantMiddleware": "forge.integrations.django.tenants",
    "app": "forge.integrations.django.project_app",
    "job_options": "forge.integrations.django.task_definitions",
}
__all__ = ["ForgeBackend", "TenantMiddleware", "app", "job_options"]


def __getattr__(name: str) -> Any:
    if (module := _NAMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
