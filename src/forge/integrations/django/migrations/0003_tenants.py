"""Generated from sql/migrations by `make format`."""

from django.db import migrations

from forge.integrations.django.schema import ApplyForge


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("forge", "0002_triggers")]  # noqa: RUF012
    operations = [ApplyForge(3)]  # noqa: RUF012
