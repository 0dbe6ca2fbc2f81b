"""Jobs, dead letters, schedules and workers in Django's admin.

Nothing is edited: actions send the same requests as the API, and so leave the same audit events.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join

from forge.core.errors import ForgeError
from forge.core.payload import encode
from forge.core.sensitive.redact import redact, redact_text, secrets_in
from forge.integrations.django.database import run_here
from forge.integrations.django.models import (
    Attempt,
    AuditEvent,
    DeadLetter,
    ForgeModel,
    Job,
    Schedule,
    Worker,
)
from forge.integrations.django.project_app import app
from forge.store import job_types

# Rows that are counted at most: a table may have many millions.
MOST_COUNTED = 10_000


class BoundedPaginator(Paginator):
    """Counts up to a limit; later pages are reached by filters."""

    @cached_property
    def count(self) -> int:
        found: int = self.object_list.order_by()[:MOST_COUNTED].count()
        return found


class JobTypeFilter(admin.SimpleListFilter):
    """Lists the registered types instead of reading the whole table for them."""

    title = "type"
    parameter_name = "job_type"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted(run_here(job_types.names()))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(job_type=self.value()) if self.value() else queryset


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows rows, with secrets redacted, and never edits them."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    # Large columns, which lists do not read.
    large: Sequence[str] = ()
    # Columns that may contain secrets, and the column whose secrets the others may quote.
    redacted: Sequence[str] = ()
    payload: str | None = None

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer(*self.large)

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: Any, obj: Any = None) -> list[str]:
        own = [field.name for field in self.model._meta.fields if field.name not in self.redacted]
        return [*own, *(f"shown_{name}" for name in self.redacted), *self.readonly_fields]

    def get_fields(self, request: Any, obj: Any = None) -> list[str]:
        return self.get_readonly_fields(request, obj)

    def shown(self, obj: ForgeModel, name: str) -> str:
        """Return a column with its secrets redacted, as every screen of Forge shows it."""
        allowed = _allowed(getattr(obj, "job_type", None))
        known = secrets_in(getattr(obj, self.payload), allowed) if self.payload else ()
        value = getattr(obj, name)
        if value is None:
            return "-"
        if isinstance(value, str):
            return redact_text(value, known)
        return encode(redact(value, known, allowed), what=name)


def _shown(name: str) -> Callable[..., str]:
    """Return the admin's column for one that may contain secrets."""

    def column(self: ReadOnlyAdmin, obj: ForgeModel) -> str:
        return self.shown(obj, name)

    column.short_description = name.replace("_", " ")  # type: ignore[attr-defined]
    return column


def _allowed(job_type: str | None) -> tuple[str, ...]:
    """Return what a type declares as harmless; nothing for a type that is not known here."""
    definition = app.definitions.get(job_type or "")
    return () if definition is None else definition.job_type.allow_sensitive


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Jobs: filters, search by id, attempts, requests to cancel and to run."""

    list_display = ("id", "job_type", "status", "queue", "priority", "attempts", "created_at")
    list_filter = ("status", JobTypeFilter, "priority")
    search_fields = ("id",)
    search_help_text = "The id of a job, of its parent, its correlation id or its idempotency key"
    ordering = ("-id",)
    redacted = ("input", "output", "meta", "last_error", "progress_message", "tags")
    payload = "input"
    large = ("input", "output", "meta")
    readonly_fields = ("failed_attempts", "events")
    actions = ("cancel", "run_now", "run_again")

    shown_input, shown_output, shown_meta = _shown("input"), _shown("output"), _shown("meta")
    shown_last_error, shown_tags = _shown("last_error"), _shown("tags")
    shown_progress_message = _shown("progress_message")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search by what has an index."""
        text = search_term.strip()
        if not text:
            return queryset, False
        try:
            id = UUID(text)
        except ValueError:
            return queryset.filter(idempotency_key=text), False
        # One query per index: an `or` over them would read the whole table.
        found = queryset.none()
        for name in ("id", "parent_id", "correlation_id", "retry_of"):
            if (found := queryset.filter(**{name: id})).exists():
                break
        return found, False

    @admin.display(description="failed attempts")
    def failed_attempts(self, job: Job) -> str:
        known = secrets_in(job.input, _allowed(job.job_type))
        rows = [
            (
                each.attempt,
                each.outcome,
                each.exception or "",
                redact_text(each.error or "", known),
                each.started_at or "",
                each.ended_at,
                redact_text(each.trace or "", known),
            )
            for each in Attempt.objects.filter(job_id=job.pk).order_by("lease")
        ]
        return _table(
            ("attempt", "outcome", "exception", "error", "started", "ended", "trace"), rows
        )

    @admin.display(description="requests")
    def events(self, job: Job) -> str:
        found = AuditEvent.objects.filter(job_id=job.pk).order_by("id")
        rows = [(e.created_at, e.event, e.actor or "", redact(e.notes) or "") for e in found]
        return _table(("time", "event", "by", "notes"), rows)

    @admin.action(description="Cancel the selected jobs", permissions=["operate"])
    def cancel(self, request: Any, queryset: Any) -> None:
        self._ask(request, queryset, app.sync.cancel, "cancel")

    @admin.action(description="Run the selected jobs now", permissions=["operate"])
    def run_now(self, request: Any, queryset: Any) -> None:
        self._ask(request, queryset, app.sync.run_now, "run")

    @admin.action(description="Run the selected final jobs again", permissions=["operate"])
    def run_again(self, request: Any, queryset: Any) -> None:
        def again(id: UUID, auth: dict[str, Any], **_: Any) -> None:
            app.sync.rerun(id, auth=auth)

        self._ask(request, queryset, again, "run again")

    def has_operate_permission(self, request: Any) -> bool:
        """Whether the user has the role that the API requires of these requests."""
        return bool(request.user.has_perm("forge.user"))

    def _ask(self, request: Any, queryset: Any, ask: Callable[..., Any], verb: str) -> None:
        auth = auth_of(request)
        asked = 0
        for job in queryset:
            options = {} if job.tenant_id is None else {"tenant_id": job.tenant_id}
            try:
                ask(job.pk, auth=auth, **options)
            except ForgeError as error:
                self.message_user(request, f"{job}: {error}", messages.ERROR)
            else:
                asked += 1
        if asked:
            text = f"Workers were asked to {verb} {asked} jobs; the requests are in the audit."
            self.message_user(request, text, messages.SUCCESS)


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """Dead letters: filters, search by id, reprocess and discard with notes."""

    list_display = ("dlq_id", "job_type", "status", "exception", "attempt_count", "created_at")
    list_filter = ("status", JobTypeFilter)
    search_fields = ("=dlq_id", "=job__id")
    search_help_text = "The number of a dead letter, or the id of its job"
    ordering = ("-dlq_id",)
    redacted = ("payload", "error_message", "attempts", "notes")
    payload = "payload"
    large = ("payload", "attempts")
    actions = ("reprocess", "discard")

    shown_payload, shown_attempts = _shown("payload"), _shown("attempts")
    shown_error_message, shown_notes = _shown("error_message"), _shown("notes")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search by number or by the id of the job."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if text.isdigit():
            return queryset.filter(dlq_id=int(text)), False
        try:
            return queryset.filter(job_id=UUID(text)), False
        except ValueError:
            return queryset.none(), False

    @admin.action(description="Reprocess the selected dead letters", permissions=["review"])
    def reprocess(self, request: Any, queryset: Any) -> Any:
        return self._review(request, queryset, "reprocess", app.sync.dead_letters.reprocess)

    @admin.action(description="Discard the selected dead letters", permissions=["review"])
    def discard(self, request: Any, queryset: Any) -> Any:
        return self._review(request, queryset, "discard", app.sync.dead_letters.discard)

    def has_review_permission(self, request: Any) -> bool:
        """Whether the user has the roles that the API requires of a review."""
        return bool(request.user.has_perms(("forge.staff", "forge.manager")))

    def _review(self, request: Any, queryset: Any, verb: str, act: Callable[..., Any]) -> Any:
        """Ask for notes, then act on each; the audit has the notes and who acted."""
        notes = request.POST.get("notes", "").strip()
        if not notes:
            context = {
                **self.admin_site.each_context(request),
                "title": f"{verb.capitalize()} {queryset.count()} dead letters",
                "action": verb,
                "letters": queryset,
                "opts": self.model._meta,
                "is_empty": "notes" in request.POST,
            }
            return TemplateResponse(request, "forge/review.html", context)
        done = 0
        for letter in queryset:
            try:
                act(letter.pk, notes=notes, actor=request.user.get_username())
            except ForgeError as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                done += 1
        if done:
            self.message_user(request, f"{done} dead letters: {verb} done.", messages.SUCCESS)
        return None


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    """Schedules: when each runs next, and how its last run ended."""

    list_display = ("type", "key", "enabled", "next_run_at", "last_run_at", "consecutive_failures")
    list_filter = ("enabled",)
    ordering = ("-id",)
    redacted = ("payload", "last_error")
    payload = "payload"

    shown_payload, shown_last_error = _shown("payload"), _shown("last_error")


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Workers that are alive or were until recently."""

    list_display = ("hostname", "pid", "running", "max_concurrent", "started_at", "last_heartbeat")
    ordering = ("-started_at",)


def auth_of(request: Any) -> dict[str, Any]:
    """Return who asks, for the audit and for handlers (`ctx.auth`)."""
    return {"name": request.user.get_username()}


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    rows = list(rows)
    if not rows:
        return "-"
    head = format_html_join("", "<th>{}</th>", ((one,) for one in heads))
    body = format_html_join(
        "", "<tr>{}</tr>", ((format_html_join("", "<td>{}</td>", ((c,) for c in r)),) for r in rows)
    )
    table: str = format_html("<table><tr>{}</tr>{}</table>", head, body)
    return table
