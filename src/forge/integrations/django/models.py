"""Read-only models of Forge's tables: for queries, joins and the admin.

Writes go through the app (`app.sync.dispatch`, `app.sync.cancel` …), which keeps the rules and the
audit.
"""

from typing import Any, NoReturn

from django.db import models

from forge.core.errors import ForgeError
from forge.core.job import Priority
from forge.core.lifecycle import Status
from forge.integrations.django.settings import DjangoSettings


class ReadOnly(ForgeError):
    """A model of Forge's tables was written."""

    def __init__(self) -> None:
        super().__init__(
            "Forge's models are read-only; use forge.integrations.django.app, for example "
            "app.sync.dispatch(…), app.sync.cancel(…) or app.sync.dead_letters.reprocess(…)"
        )


class TextArrayField(models.Field):
    """A list of texts; ArrayField would need django.contrib.postgres among the installed apps."""

    def db_type(self, connection: Any) -> str:
        return "text[]"


class ReadOnlyQuerySet(models.QuerySet):
    """Refuses what would write."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnly

    create = bulk_create = bulk_update = get_or_create = update_or_create = update = _refuse
    delete = _raw_delete = _refuse


class ForgeManager(models.Manager.from_queryset(ReadOnlyQuerySet)):  # type: ignore[misc]
    """Reads from the database that has Forge's tables."""

    use_in_migrations = False

    def get_queryset(self) -> Any:
        queryset = super().get_queryset()
        # The database of a relation, or of a router, where one was chosen.
        return queryset if self._db else queryset.using(DjangoSettings.current().database)


class ForgeModel(models.Model):
    """A row that only Forge writes."""

    objects = ForgeManager()

    class Meta:
        abstract = True
        managed = False
        default_permissions = ("view",)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnly

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnly


class Job(ForgeModel):
    """One row per job."""

    id = models.UUIDField(primary_key=True)
    job_type = models.CharField("type", max_length=255)
    status = models.CharField(
        max_length=32, choices=[(status.value, status.value) for status in Status]
    )
    queue = models.CharField(max_length=255)
    priority = models.IntegerField(choices=[(one.value, one.name.lower()) for one in Priority])
    attempts = models.IntegerField()
    max_attempts = models.IntegerField()
    crashes = models.IntegerField()
    progress_percent = models.IntegerField("progress in percent", null=True)
    progress_message = models.TextField("progress", null=True)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    last_error = models.TextField(null=True)
    error_class = models.CharField(max_length=32, null=True)
    scheduled_at = models.DateTimeField()
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    last_heartbeat = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    original_scheduled_at = models.DateTimeField(null=True)
    worker_id = models.UUIDField(null=True)
    worker_capability = models.CharField(max_length=255, null=True)
    idempotency_key = models.CharField(max_length=255, null=True)
    tenant_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=32, null=True)
    correlation_id = models.UUIDField(null=True)
    parent_id = models.UUIDField(null=True)
    retry_of = models.UUIDField(null=True)
    tags = TextArrayField(null=True)
    meta = models.JSONField(null=True)
    auth = models.JSONField(null=True)
    lease = models.BigIntegerField()
    version = models.BigIntegerField()

    class Meta(ForgeModel.Meta):
        db_table = "forge_jobs"
        # Each is a role of the API and the dashboard.
        permissions = (
            ("viewer", "Can only read in Forge's API and dashboard"),
            ("user", "Can dispatch, read and cancel jobs (role user)"),
            ("staff", "Can read queues, schedules, workers and the audit log (role staff)"),
            ("manager", "Can delete jobs, review dead letters, change schedules (role manager)"),
            ("operator", "Can access the jobs of every tenant"),
        )

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"


class Attempt(ForgeModel):
    """One row per attempt that did not succeed; Django needs one column as the key."""

    job = models.ForeignKey(
        Job, models.DO_NOTHING, db_constraint=False, related_name="failed_attempts"
    )
    lease = models.BigIntegerField(primary_key=True)
    attempt = models.IntegerField()
    outcome = models.CharField(max_length=32)
    error_class = models.CharField(max_length=32, null=True)
    exception = models.TextField(null=True)
    error = models.TextField(null=True)
    trace = models.TextField(null=True)
    worker_id = models.UUIDField(null=True)
    tenant_id = models.BigIntegerField(null=True)
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    retry_at = models.DateTimeField(null=True)

    class Meta(ForgeModel.Meta):
        db_table = "forge_attempts"

    def __str__(self) -> str:
        return f"attempt {self.attempt}: {self.outcome}"


class DeadLetter(ForgeModel):
    """One row per job that failed for good."""

    dlq_id = models.BigIntegerField("id", primary_key=True)
    job = models.ForeignKey(Job, models.DO_NOTHING, db_constraint=False, related_name="letters")
    job_type = models.CharField("type", max_length=255)
    status = models.CharField(
        max_length=32,
        choices=[(one, one) for one in ("pending_review", "reprocessed", "discarded")],
    )
    queue = models.CharField(max_length=255)
    tenant_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=32, null=True)
    payload = models.JSONField()
    error_class = models.CharField(max_length=32, null=True)
    exception = models.TextField(null=True)
    error_message = models.TextField(null=True)
    place = models.TextField(null=True)
    attempt_count = models.IntegerField()
    attempts = models.JSONField()
    created_at = models.DateTimeField()
    reviewed_at = models.DateTimeField(null=True)
    reviewed_by = models.TextField(null=True)
    notes = models.TextField(null=True)
    new_job_id = models.UUIDField(null=True)

    class Meta(ForgeModel.Meta):
        db_table = "forge_dead_letters"

    def __str__(self) -> str:
        return f"{self.job_type} {self.dlq_id}"


class Schedule(ForgeModel):
    """One row per schedule."""

    id = models.UUIDField(primary_key=True)
    type = models.CharField(max_length=255)
    key = models.CharField(max_length=255)
    payload = models.JSONField()
    enabled = models.BooleanField()
    every = models.DurationField(null=True)
    cron = models.TextField(null=True)
    tz = models.TextField()
    next_run_at = models.DateTimeField(null=True)
    running_since = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    last_error = models.TextField(null=True)
    consecutive_failures = models.IntegerField()
    tenant_id = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(ForgeModel.Meta):
        db_table = "forge_schedules"

    def __str__(self) -> str:
        return f"{self.type} {self.key}".strip()


class Worker(ForgeModel):
    """One row per worker that is alive or was until recently."""

    id = models.UUIDField(primary_key=True)
    hostname = models.TextField()
    pid = models.IntegerField()
    version = models.TextField()
    queues = TextArrayField(null=True)
    job_types = TextArrayField()
    max_concurrent = models.IntegerField()
    running = models.IntegerField()
    draining = models.BooleanField()
    started_at = models.DateTimeField()
    last_heartbeat = models.DateTimeField()
    drained_at = models.DateTimeField(null=True)
    drained_by = models.TextField(null=True)

    class Meta(ForgeModel.Meta):
        db_table = "forge_workers"

    def __str__(self) -> str:
        return f"{self.hostname} {self.pid}"


class AuditEvent(ForgeModel):
    """One row per request of a person or program."""

    id = models.BigIntegerField(primary_key=True)
    event = models.CharField(max_length=64)
    actor = models.TextField(null=True)
    tenant_id = models.BigIntegerField(null=True)
    job_id = models.UUIDField(null=True)
    dlq_id = models.BigIntegerField(null=True)
    schedule_id = models.UUIDField(null=True)
    notes = models.TextField(null=True)
    detail = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta(ForgeModel.Meta):
        db_table = "forge_audit_events"

    def __str__(self) -> str:
        return str(self.event)
