"""Who may call what, in one table: docs/reference/http.md shows it, and a test tries every cell."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from forge.http.access import Need


class Tenancy(StrEnum):
    """What a caller meets who belongs to another tenant."""

    ROW = "404 for another tenant's"
    LIST = "only its tenant's"
    BODY = "403 for another `tenant_id`"
    CALLER = "runs as the caller's tenant"
    SHARED = "the same for all"


class Right(NamedTuple):
    """What a route asks of its caller; no need lets everybody in."""

    need: Need | None
    tenancy: Tenancy
    # What serves instead of the role.
    instead: str | None = None

    @property
    def who(self) -> str:
        """Say who may call."""
        match self.need:
            case None:
                who = "everybody"
            case Need.USER:
                who = "`user` or `staff`"
            case Need.STAFF:
                who = "`staff`"
            case Need.MANAGER:
                who = "`manager` and `staff`"
        return f"{who}, or {self.instead}" if self.instead else who


USER, STAFF, MANAGER = Need.USER, Need.STAFF, Need.MANAGER
ROW, LIST, SHARED = Tenancy.ROW, Tenancy.LIST, Tenancy.SHARED

RIGHTS: Mapping[str, Right] = {
    "POST /_api/jobs/{job_type}/dispatch": Right(USER, Tenancy.BODY),
    "POST /_api/jobs/{job_type}/dispatch_many": Right(USER, Tenancy.BODY),
    "GET /_api/jobs": Right(USER, LIST),
    "GET /_api/jobs/counts": Right(USER, LIST),
    "GET /_api/jobs/{job_id}": Right(USER, ROW),
    "GET /_api/jobs/{job_id}/attempts": Right(USER, ROW),
    "GET /_api/jobs/{job_id}/eta": Right(USER, ROW),
    "GET /_api/jobs/{job_id}/events": Right(USER, ROW, "a watch token"),
    "POST /_api/jobs/{job_id}/watch_token": Right(USER, ROW),
    "POST /_api/jobs/{job_id}/cancel": Right(USER, ROW),
    "POST /_api/jobs/{job_id}/run_now": Right(USER, ROW),
    "DELETE /_api/jobs/{job_id}": Right(MANAGER, ROW),
    "WS /_api/ws": Right(USER, ROW, "a watch token"),
    "POST /_api/mutations/{name}": Right(USER, Tenancy.CALLER),
    "POST /_api/actions/{name}": Right(USER, Tenancy.CALLER),
    "GET /_api/job_types": Right(USER, SHARED),
    "GET /_api/workers": Right(STAFF, SHARED),
    "GET /_api/schedules": Right(STAFF, LIST),
    "GET /_api/schedules/{schedule_id}": Right(STAFF, ROW),
    "POST /_api/schedules/{schedule_id}/enable": Right(MANAGER, ROW),
    "POST /_api/schedules/{schedule_id}/disable": Right(MANAGER, ROW),
    "POST /_api/schedules/{schedule_id}/run": Right(MANAGER, ROW),
    "GET /_api/audit": Right(STAFF, LIST),
    "GET /api/jobs/admin/queue/": Right(MANAGER, LIST),
    "GET /api/jobs/admin/queue/statistics/": Right(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/": Right(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/statistics/": Right(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/groups/": Right(MANAGER, LIST),
    "POST /api/jobs/admin/dlq/reprocess/": Right(MANAGER, Tenancy.CALLER),
    "GET /api/jobs/admin/dlq/{dlq_id}/": Right(MANAGER, ROW),
    "POST /api/jobs/admin/dlq/{dlq_id}/reprocess/": Right(MANAGER, ROW),
    "POST /api/jobs/admin/dlq/{dlq_id}/discard/": Right(MANAGER, ROW),
    "GET /metrics": Right(STAFF, SHARED, "from the same machine"),
    "GET /openapi.json": Right(STAFF, SHARED, "from the same machine"),
    "GET /livez": Right(None, SHARED),
    "GET /readyz": Right(None, SHARED),
}
