"""`app.dead_letters`: list, group, count, reprocess, discard."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Unpack

from forge.core.dead_letter import (
    UNDER_REVIEW,
    Activity,
    Causes,
    DeadLetter,
    DeadLetterGroup,
    LetterFilter,
    Page,
    Reprocessed,
    Statistics,
)
from forge.core.duration import parse_duration
from forge.core.errors import AlreadyReviewed, ForgeError, InvalidValue, UnknownDeadLetter
from forge.core.job import PriorityLike
from forge.core.merge_patch import merge_patch
from forge.core.new_job import DispatchOptions, check_name
from forge.core.payload import encode
from forge.core.sensitive.shown import refuse_redacted
from forge.dead_letters.bulk import (
    DiscardRequest,
    LetterRequest,
    Plan,
    ReprocessRequest,
    limited_to_known,
    plan,
)
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.edited_payload import OriginalPayload, checked_edit
from forge.definitions.job import JobDefinition
from forge.jobs.audited_requests import AuditedRequests, AuditEntry
from forge.jobs.handle import JobHandle
from forge.jobs.session import Sessions
from forge.store import dead_letters
from forge.store.borrowed import run_on

NOTES_NEEDED = "notes are required to discard a dead letter; explain why it will not be reprocessed"
LONGEST_NOTES = 10_000
MAX_LISTED = 10_000
MAX_STEPS = 60
SHORTEST_STEP = timedelta(minutes=1)


class ReviewJobs(NamedTuple):
    """The built-in jobs that review many dead letters."""

    reprocess: JobDefinition[Any, Any]
    discard: JobDefinition[Any, Any]


class DeadLetters:
    """The dead letters of an app."""

    def __init__(
        self,
        sessions: Sessions,
        catalog: Catalog,
        requests: AuditedRequests,
        review_jobs: ReviewJobs,
        run: RunStatement | None = None,
    ) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._requests = requests
        self._review_jobs = review_jobs
        self._own = run or sessions.run

    def running(self, run: RunStatement) -> "DeadLetters":
        """Return the same verbs with `run` for statements, such as a tenant-bound connection."""
        return DeadLetters(self._sessions, self._catalog, self._requests, self._review_jobs, run)

    async def list(
        self,
        *,
        status: str | None = None,
        before: int | None = None,
        limit: int = 50,
        conn: Any = None,
        **causes: Unpack[Causes],
    ) -> Page:
        """Return dead letters, the newest first; `before` is the last page's `next_cursor`."""
        wanted = LetterFilter(status=status, **causes)
        run = self._run(conn)
        found = await run(dead_letters.listed(wanted, before, _limit(limit) + 1))
        total = await run(dead_letters.count(wanted))
        items, more = found[:limit], len(found) > limit
        return Page(items, total.letters, items[-1].dlq_id if more else None)

    async def get(
        self, dlq_id: int, *, tenant_id: int | None = None, conn: Any = None
    ) -> DeadLetter:
        """Return a dead letter with its payload and every attempt."""
        return await self._get(dlq_id, tenant_id, self._run(conn))

    async def groups(
        self,
        *,
        status: str | None = UNDER_REVIEW,
        limit: int = 100,
        conn: Any = None,
        **causes: Unpack[Causes],
    ) -> Sequence[DeadLetterGroup]:
        """Return dead letters by cause, the most frequent first."""
        wanted = LetterFilter(status=status, **causes)
        run = self._run(conn)
        return await run(dead_letters.groups(wanted, _limit(limit)))

    async def activity(
        self,
        fingerprints: Sequence[str],
        *,
        status: str | None = UNDER_REVIEW,
        step: timedelta | str = "1h",
        steps: int = 24,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> Activity | None:
        """Return how many dead letters each cause got per step, up to the present one."""
        length = parse_duration(step, what="step")
        if length < SHORTEST_STEP:
            raise InvalidValue(f"step must be at least a minute, not {step!r}")
        if not 1 <= steps <= MAX_STEPS:
            raise InvalidValue(f"steps must be from 1 to {MAX_STEPS}, not {steps!r}")
        causes = LetterFilter(status=status, tenant_id=tenant_id)
        run = self._run(conn)
        return await run(
            dead_letters.activity(fingerprints, causes.status, causes.tenant_id, length, steps)
        )

    async def statistics(self, *, tenant_id: int | None = None, conn: Any = None) -> Statistics:
        """Return how many dead letters there are, by status, category, type and error class."""
        run = self._run(conn)
        return await run(dead_letters.statistics(tenant_id))

    async def reprocess(
        self,
        dlq_id: int,
        *,
        notes: str | None = None,
        actor: str | None = None,
        payload: Any = None,
        patch: Any = None,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> Reprocessed:
        """Make a new job of a dead letter, with another payload or a merge patch of it if given.

        The request is written into the audit first, in a transaction of its own, whatever follows.
        """
        notes = _notes(notes)
        own, run = self._run(None), self._run(conn)
        letter = await self._get(dlq_id, tenant_id, run)
        say = partial(dead_letters.audit, dlq_ids=[dlq_id], actor=actor, notes=notes)
        await own(say("job_dlq_reprocess_requested"))
        try:
            text = await self._edited(letter, payload, patch, conn)
            made = await run(
                dead_letters.reprocess([dlq_id], tenant_id, actor, notes, payload=text)
            )
            if not made:
                raise await self._reviewed(dlq_id, tenant_id, run)
        except ForgeError as error:
            reason = encode({"reason": str(error)})
            await own(say("job_dlq_reprocess_failed", detail=reason))
            raise
        self._wake(conn)
        (new,) = made
        return new

    async def check_reprocess(
        self,
        dlq_id: int,
        *,
        notes: str | None = None,
        payload: Any = None,
        patch: Any = None,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> DeadLetter:
        """Raise what `reprocess` would raise, change nothing, and return the dead letter."""
        _notes(notes)
        run = self._run(conn)
        letter = await self._get(dlq_id, tenant_id, run)
        if letter.status != UNDER_REVIEW:
            raise await self._reviewed(dlq_id, tenant_id, run)
        await self._edited(letter, payload, patch, conn)
        return letter

    async def discard(
        self,
        dlq_id: int,
        *,
        notes: str | None = None,
        actor: str | None = None,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> None:
        """Close the review of a dead letter without doing it again, and say why in `notes`."""
        if not (why := _notes(notes)):
            raise InvalidValue(NOTES_NEEDED)
        run = self._run(conn)
        if not await run(dead_letters.discard([dlq_id], tenant_id, actor, why)):
            raise await self._reviewed(dlq_id, tenant_id, run)

    async def plan(self, **causes: Unpack[Causes]) -> Plan:
        """Return how many dead letters `reprocess_many` with this filter would take, by cause."""
        return await plan(LetterFilter(status=UNDER_REVIEW, **causes), self._own)

    async def reprocess_many(
        self,
        *,
        notes: str | None = None,
        actor: str | None = None,
        rate: float = 10.0,
        canary: int = 1,
        canary_timeout: timedelta | str = "5m",
        max_failures: int = 5,
        priority: PriorityLike | None = "low",
        **causes: Unpack[Causes],
    ) -> JobHandle:
        """Have a worker make new jobs of all that match, some a second, a few of them first.

        It stops by itself when a canary fails or does not complete in time, or when an attempt of
        `max_failures` of those that are watched has failed again.
        """
        asked = ReprocessRequest.checked(
            causes, _notes(notes), rate, canary, canary_timeout, max_failures, priority
        )
        event = "job_dlq_bulk_reprocess_requested"
        return await self._request(self._review_jobs.reprocess, event, asked, actor)

    async def discard_many(
        self,
        *,
        notes: str | None = None,
        actor: str | None = None,
        rate: float | None = None,
        **causes: Unpack[Causes],
    ) -> JobHandle:
        """Have a worker discard all that match, and say why in `notes`.

        Without a rate it goes as fast as ordinary jobs allow.
        """
        if not (why := _notes(notes)):
            raise InvalidValue(NOTES_NEEDED)
        asked = DiscardRequest.checked(causes, why, rate)
        event = "job_dlq_bulk_discard_requested"
        return await self._request(self._review_jobs.discard, event, asked, actor)

    async def _request(
        self, job: JobDefinition[Any, Any], event: str, wanted: LetterRequest, actor: str | None
    ) -> JobHandle:
        limited = await limited_to_known(wanted, self._own)
        options: DispatchOptions = {"auth": {"actor": actor}}
        if wanted.tenant_id is not None:
            options["tenant_id"] = wanted.tenant_id
        detail = encode(limited.model_dump(exclude_none=True))
        entry = AuditEntry(event, wanted.notes, detail)
        return await self._requests.dispatch(job, limited, options, entry)

    async def _get(self, dlq_id: int, tenant_id: int | None, run: RunStatement) -> DeadLetter:
        letter = await run(dead_letters.get(dlq_id, tenant_id))
        if letter is None:
            raise UnknownDeadLetter(
                f"there is no dead letter {dlq_id}", "`forge dlq list` has them"
            )
        return letter

    async def _reviewed(self, dlq_id: int, tenant_id: int | None, run: RunStatement) -> ForgeError:
        letter = await self._get(dlq_id, tenant_id, run)
        by = f" by {letter.reviewed_by}" if letter.reviewed_by else ""
        became = f" as job {letter.new_job_id}" if letter.new_job_id else ""
        reviewed = f"dead letter {dlq_id} was {letter.status}{by}{became} already"
        if letter.new_job_id and await _is_deleted(dlq_id, run):
            return AlreadyReviewed(
                f"{reviewed}, and that job was deleted; dispatch a new job instead"
            )
        return AlreadyReviewed(f"{reviewed}; look at that first")

    async def _edited(self, letter: DeadLetter, payload: Any, patch: Any, conn: Any) -> str | None:
        """Return the edited payload as JSON, or None to keep the original one."""
        if patch is not None:
            if payload is not None:
                raise InvalidValue("pass either payload or patch, not both")
            refuse_redacted("the patch", patch)
            payload = merge_patch(letter.payload, patch)
        if payload is None:
            return None
        ask = None if conn is None else self._run(conn)
        original = OriginalPayload(
            letter.job_type,
            letter.payload,
            "dead letter",
            letter.idempotency_key or f"dlq_{letter.dlq_id}",
            letter.tenant_id,
            letter.correlation_id,
        )
        return await checked_edit(self._catalog, original, payload, ask)

    def _run(self, conn: Any) -> RunStatement:
        return self._own if conn is None else partial(run_on, conn)

    def _wake(self, conn: Any) -> None:
        session = self._sessions.here()
        if conn is None:
            session.wake()
        else:
            session.wake_later()


async def _is_deleted(dlq_id: int, run: RunStatement) -> bool:
    (outcome,) = await run(dead_letters.outcomes([dlq_id]))
    return outcome.job_status is None


def _notes(notes: str | None) -> str | None:
    return None if notes is None or not notes.strip() else check_notes(notes)


def check_notes(notes: str) -> str:
    """Refuse notes that cannot be stored; they may have several lines."""
    check_name(" ".join(notes.split()), what="notes", longest=LONGEST_NOTES)
    return notes.strip()


def _limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidValue(f"limit must be from 1 to {MAX_LISTED:,}, not {limit!r}")
    return limit
