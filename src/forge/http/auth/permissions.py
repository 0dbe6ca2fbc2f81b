"""Permissions of all routes in one table; tests compare it with the routes and the docs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from forge.http.auth.access import RequiredRole


class Tenancy(StrEnum):
    """How a route treats rows of other tenants."""

    ROW = "404 for another tenant's"
    LIST = "only its tenant's"
    COUNTS = "only its tenant's outcomes"
    BODY = "403 for another `tenant_id`"
    CALLER = "runs as the caller's tenant"
    SHARED = "the same for all"
    OPERATOR = "403 for a token with a tenant"


class RoutePermission(NamedTuple):
    """The role that a route requires, or None, and how it treats other tenants."""

    required_role: RequiredRole | None
    tenancy: Tenancy
    # An alternative to the role.
    alternative: str | None = None

    @property
    def who(self) -> str:
        """Describe who may call the route."""
        match self.required_role:
            case None:
                who = "everybody"
            case RequiredRole.USER:
                who = "`user` or `staff`"
            case RequiredRole.STAFF:
                who = "`staff`"
            case RequiredRole.MANAGER:
                who = "`manager` and `staff`"
        return f"{who}, or {self.alternative}" if self.alternative else who


USER, STAFF, MANAGER = RequiredRole.USER, RequiredRole.STAFF, RequiredRole.MANAGER
ROW, LIST, SHARED, OPERATOR = Tenancy.ROW, Tenancy.LIST, Tenancy.SHARED, Tenancy.OPERATOR

PERMISSIONS: Mapping[str, RoutePermission] = {
    "POST /_api/jobs/{job_type}/dispatch": RoutePermission(USER, Tenancy.BODY),
    "POST /_api/jobs/{job_type}/dispatch_many": RoutePermission(USER, Tenancy.BODY),
    "GET /_api/jobs": RoutePermission(USER, LIST),
    "GET /_api/jobs/counts": RoutePermission(USER, LIST),
    "GET /_api/jobs/{job_id}": RoutePermission(USER, ROW),
    "GET /_api/jobs/{job_id}/attempts": RoutePermission(USER, ROW),
    "GET /_api/jobs/{job_id}/eta": RoutePermission(USER, ROW),
    "GET /_api/jobs/{job_id}/timeline": RoutePermission(USER, ROW),
    "GET /_api/jobs/{job_id}/why": RoutePermission(USER, ROW),
    "GET /_api/jobs/{job_id}/live": RoutePermission(USER, ROW, "a watch token"),
    "GET /_api/jobs/{job_id}/events": RoutePermission(USER, ROW, "a watch token"),
    "POST /_api/jobs/{job_id}/watch_token": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/cancel": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/run_now": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/reschedule": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/reprioritise": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/move": RoutePermission(USER, ROW),
    "POST /_api/jobs/{job_id}/rerun": RoutePermission(USER, ROW),
    "DELETE /_api/jobs/{job_id}": RoutePermission(MANAGER, ROW),
    "POST /_api/jobs/bulk": RoutePermission(MANAGER, Tenancy.CALLER),
    "WS /_api/ws": RoutePermission(USER, ROW, "a watch token"),
    "POST /_api/mutations/{name}": RoutePermission(USER, Tenancy.CALLER),
    "POST /_api/actions/{name}": RoutePermission(USER, Tenancy.CALLER),
    "GET /_api/statistics": RoutePermission(USER, Tenancy.COUNTS),
    "GET /_api/statistics/by_type": RoutePermission(USER, Tenancy.COUNTS),
    "GET /_api/overview": RoutePermission(STAFF, OPERATOR),
    "GET /_api/findings": RoutePermission(STAFF, OPERATOR),
    "GET /_api/backlog": RoutePermission(STAFF, OPERATOR),
    "GET /_api/job_types": RoutePermission(USER, SHARED),
    "GET /_api/workers": RoutePermission(STAFF, SHARED),
    "GET /_api/workers/{worker_id}": RoutePermission(STAFF, SHARED),
    "POST /_api/workers/{worker_id}/drain": RoutePermission(MANAGER, OPERATOR),
    "POST /_api/workers/{worker_id}/resume": RoutePermission(MANAGER, OPERATOR),
    "GET /_api/pauses": RoutePermission(STAFF, OPERATOR),
    "POST /_api/pauses": RoutePermission(MANAGER, OPERATOR),
    "DELETE /_api/pauses/{pause_id}": RoutePermission(MANAGER, OPERATOR),
    "GET /_api/schedules": RoutePermission(STAFF, LIST),
    "GET /_api/schedules/{schedule_id}": RoutePermission(STAFF, ROW),
    "PATCH /_api/schedules/{schedule_id}": RoutePermission(MANAGER, ROW),
    "POST /_api/schedules/{schedule_id}/preview": RoutePermission(STAFF, ROW),
    "POST /_api/schedules/{schedule_id}/enable": RoutePermission(MANAGER, ROW),
    "POST /_api/schedules/{schedule_id}/disable": RoutePermission(MANAGER, ROW),
    "POST /_api/schedules/{schedule_id}/run": RoutePermission(MANAGER, ROW),
    "GET /_api/audit": RoutePermission(STAFF, LIST),
    "GET /api/jobs/admin/queue/": RoutePermission(MANAGER, LIST),
    "GET /api/jobs/admin/queue/statistics/": RoutePermission(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/": RoutePermission(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/statistics/": RoutePermission(MANAGER, LIST),
    "GET /api/jobs/admin/dlq/groups/": RoutePermission(MANAGER, LIST),
    "POST /api/jobs/admin/dlq/reprocess/": RoutePermission(MANAGER, Tenancy.CALLER),
    "POST /api/jobs/admin/dlq/discard/": RoutePermission(MANAGER, Tenancy.CALLER),
    "GET /api/jobs/admin/dlq/{dlq_id}/": RoutePermission(MANAGER, ROW),
    "POST /api/jobs/admin/dlq/{dlq_id}/reprocess/": RoutePermission(MANAGER, ROW),
    "POST /api/jobs/admin/dlq/{dlq_id}/discard/": RoutePermission(MANAGER, ROW),
    "GET /_api/me": RoutePermission(USER, SHARED),
    "GET /metrics": RoutePermission(STAFF, SHARED, "from the same machine"),
    "GET /openapi.json": RoutePermission(STAFF, SHARED, "from the same machine"),
    "GET /livez": RoutePermission(None, SHARED),
    "GET /readyz": RoutePermission(None, SHARED),
    "GET /": RoutePermission(None, SHARED),
    "GET /assets/{asset}": RoutePermission(None, SHARED),
}
