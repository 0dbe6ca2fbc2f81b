"""Editing a schedule: validated, audited, and shown before in a preview."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.duration import format_duration
from forge.core.errors import InvalidValue, UnknownSchedule
from forge.core.job import Priority
from forge.core.new_job import check_reason
from forge.core.payload import encode
from forge.core.schedules.edit import (
    ScheduleChanges,
    SchedulePreview,
    changed_fields,
    check_changes,
    edited,
    preview,
)
from forge.core.schedules.record import ScheduleRecord
from forge.core.sensitive.shown import refuse_redacted
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.schedule import ScheduleDefinition
from forge.store import audit, schedules
from forge.store.schedules import EditedValues


class EditRequest(NamedTuple):
    """A request to edit a schedule, or to preview the edit."""

    schedule_id: UUID
    changes: ScheduleChanges
    # Whether its definition in code applies again, instead of earlier edits.
    reset: bool = False
    reason: str | None = None
    actor: str | None = None
    # Only a schedule of this tenant; None: of any.
    tenant_id: int | None = None


class ScheduleEditor:
    """Edits schedules with the types that an app has and those in the database."""

    def __init__(
        self, catalog: Catalog, definitions: Mapping[str, ScheduleDefinition[Any]]
    ) -> None:
        self._catalog = catalog
        self._definitions = definitions

    async def edit(self, ask: RunStatement, request: EditRequest) -> ScheduleRecord:
        """Change a schedule and write an audit event; needs one transaction for both."""
        reason = check_reason(request.reason)
        check_changes(request.changes)
        await ask(schedules.lock(request.schedule_id))
        before = await self._get(ask, request)
        after = await self._edited(ask, request, before)
        if after == before:
            return before
        payload = await self._encoded(ask, request, after)
        written = await ask(schedules.edit(before.id, request.tenant_id, _values(after, payload)))
        if written is None:
            raise _unknown(request.schedule_id)
        detail = encode(_detail(before, after))
        await ask(
            audit.add_of_schedule(
                "schedule_edited", request.actor, before.tenant_id, before.id, reason, detail
            )
        )
        return written

    async def preview(self, ask: RunStatement, request: EditRequest, count: int) -> SchedulePreview:
        """Check an edit, and return when the schedule would run after it."""
        before = await self._get(ask, request)
        after = await self._edited(ask, request, before)
        await self._encoded(ask, request, after)
        now = await ask(schedules.now())
        return preview(before, after, now, count, self._default_rule(before))

    async def _get(self, ask: RunStatement, request: EditRequest) -> ScheduleRecord:
        found = await ask(schedules.get(request.schedule_id, request.tenant_id))
        if found is None:
            raise _unknown(request.schedule_id)
        return found

    async def _edited(
        self, ask: RunStatement, request: EditRequest, row: ScheduleRecord
    ) -> ScheduleRecord:
        for name in ("payload", "patch"):
            refuse_redacted(f"the {name}", request.changes.get(name))
        changes = request.changes
        if request.reset:
            changes = self._defined(row) | changes
        after = edited(row, changes, await ask(schedules.now()), self._default_rule(row))
        return replace(after, edited=[]) if request.reset else after

    def _defined(self, row: ScheduleRecord) -> ScheduleChanges:
        """Return what the definition in code says of its row."""
        definition = self._definitions.get(row.type)
        if definition is None or not definition.plants_itself:
            raise InvalidValue(
                f"{row.name} has no cron definition in this app, so that it cannot be reset; "
                "run it where the code is, or edit the fields"
            )
        rule, attributes = definition.rule, definition.job_type
        return {
            "cron": rule.cron,
            "tz": rule.tz,
            "missed": rule.missed,
            "jitter": rule.jitter,
            "priority": Priority(attributes.priority),
            "worker_capability": attributes.worker_capability,
        }

    def _default_rule(self, row: ScheduleRecord) -> Any:
        definition = self._definitions.get(row.type)
        return None if definition is None else definition.rule

    async def _encoded(
        self, ask: RunStatement, request: EditRequest, after: ScheduleRecord
    ) -> str | None:
        """Check the payload of an edit by its type; None if it stays."""
        if not {"payload", "patch"} & request.changes.keys():
            return None
        definition = self._definitions.get(after.type)
        encoder = await self._catalog.find_schedule(after.type, definition, ask)
        return encoder.encode_and_warn(after.payload)


def _values(row: ScheduleRecord, payload: str | None) -> EditedValues:
    names = EditedValues._fields[1:]
    return EditedValues(payload, *(getattr(row, name) for name in names))


def _detail(before: ScheduleRecord, after: ScheduleRecord) -> dict[str, Any]:
    """Say what changed, without payloads: they may have secrets."""
    changed = changed_fields(before, after)
    plain = [name for name in changed if name != "payload"]
    return {
        "changed": changed,
        "before": {name: _written(getattr(before, name)) for name in plain},
        "after": {name: _written(getattr(after, name)) for name in plain},
    }


def _written(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return format_duration(value) if hasattr(value, "total_seconds") else value


def _unknown(schedule_id: UUID) -> UnknownSchedule:
    return UnknownSchedule(
        f"schedule {schedule_id} not found", "`forge schedules list` shows all schedules"
    )
