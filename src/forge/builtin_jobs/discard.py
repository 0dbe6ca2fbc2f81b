"""forge.discard: closes the review of all dead letters that match, without new jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forge.builtin_jobs.bulk_work import BulkOrder, Changed, carry_out
from forge.core.job import BUILTIN_QUEUE
from forge.dead_letters.bulk import DiscardRequest
from forge.definitions.catalog import RunStatement
from forge.definitions.job import job
from forge.store import dead_letters
from forge.store.bulk import Chosen
from forge.store.notify import CHANGES, changes_payload, send

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

DISCARD = "forge.discard"
# Ids that one statement reads.
WINDOW = 5000


@job(name=DISCARD, queue=BUILTIN_QUEUE, priority="high", dead_letter=False, max_attempts=20)
async def discard(ctx: "JobContext", input: DiscardRequest) -> dict[str, Any]:
    """Discard the next dead letters that match, for a short time."""
    if ctx.tenant_id is not None:
        # The database has verified the job's tenant, but not the one in the input.
        input = input.model_copy(update={"tenant_id": ctx.tenant_id})
    return await carry_out(ctx, MatchingLetters(ctx, input))


class MatchingLetters:
    """The dead letters under review that a request applies to."""

    is_crowded = False

    def __init__(self, ctx: "JobContext", wanted: DiscardRequest) -> None:
        self._ctx = ctx
        self._wanted = wanted

    @property
    def order(self) -> BulkOrder:
        wanted = self._wanted
        return BulkOrder(
            "discard", "discarded", "dead letter", wanted.letters, "exact", wanted.rate
        )

    def read_id(self, text: str) -> int:
        return int(text)

    async def start(self) -> tuple[int, int]:
        return 0, 0

    async def choose(self, after: int) -> Chosen[int]:
        wanted = self._wanted
        found = await self._ctx.run(
            dead_letters.choose(wanted.filter, after=after, until=wanted.until, limit=WINDOW)
        )
        return Chosen(found, found[-1] if len(found) == WINDOW else None)

    async def change(self, ids: Sequence[int], run: RunStatement) -> Changed[int]:
        ctx, wanted = self._ctx, self._wanted
        locked = await run(dead_letters.lock(ids, wanted.tenant_id))
        missing = sorted({*ids} - {*locked})
        busy = await run(dead_letters.under_review(missing)) if missing else []
        discarded = await run(
            dead_letters.discard(
                locked, wanted.tenant_id, ctx.auth.actor, wanted.notes, request_id=ctx.job_id
            )
        )
        await run(send(CHANGES, changes_payload({ctx.job_id})))
        return Changed(len(discarded), busy)

    def share(self, first: int, after: int) -> float:
        return (after - first) / max(1, self._wanted.until - first)
