"""The Django app: discovers jobs, and keeps Forge's tables with `manage.py migrate`."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class ForgeConfig(AppConfig):
    """Forge's tables, commands and jobs in a Django project."""

    name = "forge.integrations.django"
    label = "forge"
    verbose_name = "Forge"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from forge.integrations.django import checks  # noqa: F401  (registers them)
        from forge.integrations.django.schema import after_migrate
        from forge.integrations.django.settings import DjangoSettings

        post_migrate.connect(after_migrate, sender=self)
        autodiscover_modules(*DjangoSettings.current().autodiscover)
