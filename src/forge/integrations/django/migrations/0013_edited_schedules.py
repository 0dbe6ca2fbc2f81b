"""Generated from sql/migrations by `make format`."""

from django.db import migrations

from forge.integrations.django.schema import ApplyForge


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("forge", "0012_failing_schedules")]  # noqa: RUF012
    operations = [ApplyForge(13)]  # noqa: RUF012
