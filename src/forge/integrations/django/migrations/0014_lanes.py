"""Generated from sql/migrations by `make format`."""

from django.db import migrations

from forge.integrations.django.schema import ApplyForge


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("forge", "0013_edited_schedules")]  # noqa: RUF012
    operations = [ApplyForge(14)]  # noqa: RUF012
