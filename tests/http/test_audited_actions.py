"""Every action over HTTP leaves its audit events once, with actor and reason."""

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from forge import Forge, ScheduleContext, Status
from tests.apps import Work, waiting
from tests.dead_letters.letters import fill
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.store.placing import placed

BULK: dict[str, dict[str, str]] = {
    **{action: {} for action in ("cancel", "run_now", "delete", "rerun")},
    "reprioritise": {"priority": "low"},
    "move": {"queue": "slow"},
}
IDS = ("job_id", "pause_id", "worker_id", "schedule_id", "dlq_id")
# They dispatch, call or look, and change nothing that exists.
NOT_AUDITED = {
    "POST /_api/jobs/{job_id}/watch_token",
    "POST /_api/schedules/{schedule_id}/preview",
    "POST /_api/mutations/{name}",
    "POST /_api/actions/{name}",
}
# As if its worker had died before it wrote the result.
LOSE_RESULT = """update forge_jobs set status = 'pending', output = null, worker_id = null,
    completed_at = null, scheduled_at = now() where id = $1"""


class Action(NamedTuple):
    """A request, the target that it needs, and the events that it leaves."""

    route: str
    target: str
    body: dict[str, Any]
    events: tuple[str, ...]


OF_A_JOB = "POST /_api/jobs/{job_id}/"
OF_A_WORKER = "POST /_api/workers/{worker_id}/"
OF_A_SCHEDULE = "/_api/schedules/{schedule_id}"
DLQ = "POST /api/jobs/admin/dlq/"
RERUN, RUN = f"{OF_A_JOB}rerun", f"POST {OF_A_SCHEDULE}/run"
# The request to reprocess is committed first, and then its outcome.
REPROCESSED = ("job_dlq_reprocess_requested", "job_dlq_reprocess_success")
ACTIONS = [
    Action(f"{OF_A_JOB}cancel", "job", {}, ("job_cancelled",)),
    Action(f"{OF_A_JOB}run_now", "job", {}, ("job_run_now",)),
    Action(f"{OF_A_JOB}reschedule", "job", {"delay": "2h"}, ("job_rescheduled",)),
    Action(f"{OF_A_JOB}reprioritise", "job", {"priority": "low"}, ("job_reprioritised",)),
    Action(f"{OF_A_JOB}move", "job", {"queue": "slow"}, ("job_moved",)),
    Action(RERUN, "final_job", {}, ("job_rerun",)),
    Action("DELETE /_api/jobs/{job_id}", "job", {}, ("job_cancelled",)),
    Action("DELETE /_api/jobs/{job_id}", "job_to_retry", {}, ("job_given_up",)),
    Action("DELETE /_api/jobs/{job_id}", "final_job", {}, ("job_deleted",)),
    *(
        Action(
            "POST /_api/jobs/bulk",
            "any_job",
            {"action": action, "filter": {"type": "waits"}} | options,
            ("job_bulk_requested",),
        )
        for action, options in BULK.items()
    ),
    Action("POST /_api/pauses", "job", {"type": "none"}, ("pause_added",)),
    Action("DELETE /_api/pauses/{pause_id}", "pause", {}, ("pause_removed",)),
    Action(f"{OF_A_WORKER}drain", "worker", {}, ("worker_drained",)),
    Action(f"{OF_A_WORKER}resume", "worker", {}, ("worker_resumed",)),
    Action(f"PATCH {OF_A_SCHEDULE}", "schedule", {"every": "9d"}, ("schedule_edited",)),
    Action(f"POST {OF_A_SCHEDULE}/disable", "schedule", {}, ("schedule_disabled",)),
    Action(f"POST {OF_A_SCHEDULE}/enable", "schedule", {}, ("schedule_enabled",)),
    Action(RUN, "schedule", {}, ("schedule_run_requested",)),
    Action(DLQ + "{dlq_id}/discard/", "letter", {}, ("job_dlq_discarded",)),
    Action(DLQ + "{dlq_id}/reprocess/", "letter", {}, REPROCESSED),
    Action(
        f"{DLQ}reprocess/",
        "letter",
        {"all": True, "canary": 0},
        ("job_dlq_bulk_reprocess_requested", *REPROCESSED, "job_dlq_bulk_reprocess_finished"),
    ),
    Action(f"{DLQ}discard/", "letter", {"all": True}, ("job_dlq_bulk_discard_requested",)),
]


class Targets:
    """Makes what actions are about; each method returns its id."""

    def __init__(self, app: Forge, psql: Any) -> None:
        self._app = app
        self._psql = psql

    async def job(self) -> object:
        return (await waiting(self._app)).id

    async def final_job(self) -> object:
        return await placed(self._psql, Status.COMPLETED, worker=uuid4(), job_type="waits")

    async def job_to_retry(self) -> object:
        later = datetime(2135, 1, 1, tzinfo=UTC)
        return await placed(
            self._psql, Status.RETRY, worker=uuid4(), job_type="waits", scheduled_at=later
        )

    async def any_job(self) -> object:
        return await self.job(), await self.final_job()

    async def letter(self) -> object:
        return (await fill(self._psql, 1, "waits"))[0]

    async def pause(self) -> object:
        return await self._psql.fetchval("select id from forge_pauses")

    async def worker(self) -> object:
        return await self._psql.fetchval("select id from forge_workers")

    async def schedule(self) -> object:
        return await self._psql.fetchval("select id from forge_schedules")


async def test_each_action_leaves_its_events_once_with_actor_and_reason(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: Any
) -> None:
    @app.schedule("sync")
    async def sync(ctx: ScheduleContext) -> None: ...

    targets, headers = Targets(app, psql), token(*MANAGER)
    left: list[Any] = []
    wanted: list[Any] = []
    await targets.job()
    await work(app)
    await app.schedules.ensure("sync", every="30d")

    for place, action in enumerate(ACTIONS):
        target = await getattr(targets, action.target)()
        reason = {"notes" if action.target == "letter" else "reason": f"reason {place}"}
        await psql.execute("delete from forge_audit_events")
        method, path = action.route.format_map(dict.fromkeys(IDS, target)).split()
        answer = await http.request(method, path, json=action.body | reason, headers=headers)
        assert answer.is_success, answer.text
        if answer.status_code == 202 and action.route not in (RERUN, RUN):
            await _carried_out_twice(app, psql, answer.json()["job_id"])
        found = await psql.fetch("select event, actor, notes from forge_audit_events order by id")
        left.append((action.route, *map(tuple, found)))
        wanted.append((action.route, *((e, "ann", f"reason {place}") for e in action.events)))

    assert left == wanted
    document = (await http.get("/openapi.json", headers=headers)).json()
    assert {action.route for action in ACTIONS} == _changing_routes(document) - NOT_AUDITED


async def _carried_out_twice(app: Forge, psql: Any, request_id: str) -> None:
    """Wait for a request, and for the attempt that follows when its result is lost."""
    first = await app.handle(request_id).result(timeout=30)
    await psql.execute("set session_replication_role = replica")
    assert await psql.execute(LOSE_RESULT, request_id) == "UPDATE 1"
    await psql.execute("set session_replication_role = origin")
    (await app.session()).wake(is_request=True)
    assert await app.handle(request_id).result(timeout=30) == first


def _changing_routes(document: dict[str, Any]) -> set[str]:
    return {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
        if method != "get" and not path.endswith(("/dispatch", "/dispatch_many"))
    }
