"""The one way to dispatch: check the input, decide how to insert it, insert it, wake workers."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from forge.core.errors import InvalidPayload, InvalidValue
from forge.core.idempotency import is_keyed
from forge.core.job import BUILTIN_QUEUE
from forge.core.new_job import DispatchOptions, NewJob, check_name, make_new_job
from forge.core.payload_rules import VERSION, CheckedPayload
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.input_encoder import InputEncoder
from forge.definitions.job import JobDefinition
from forge.definitions.payload_warnings import EVERY, FIRST
from forge.jobs.handle import HandleApp, JobHandle
from forge.jobs.session import Sessions
from forge.store import jobs
from forge.store.borrowed import all_or_nothing, copy_on, notify_on, run_on
from forge.store.connection.database import Connection
from forge.store.ids import new_id, new_id_bytes, new_ids
from forge.store.jobs import Dispatched
from forge.store.notify import WAKE
from forge.store.statement import Statement
from forge.telemetry.traces import traced, traceparent_for
from forge.transports.postgres import MANY

CHUNK = 1000
T = TypeVar("T")
Job = JobDefinition[Any, Any] | str


class Dispatcher:
    """Dispatches for Python, `app.sync`, HTTP, mutations and actions, and built-in requests.

    A job is inserted on a connection of the app, on a borrowed one (`conn`), or by `run`, such as
    the tenant-bound connection of an HTTP caller.
    """

    def __init__(self, catalog: Catalog, sessions: Sessions, app: HandleApp) -> None:
        self._catalog = catalog
        self._sessions = sessions
        self._app = app

    async def dispatch(
        self,
        job: Job,
        value: Any,
        options: DispatchOptions,
        *,
        conn: Any = None,
        notify: bool = False,
        trace: str | None = None,
    ) -> JobHandle[Any]:
        """Dispatch one job and wake workers, at once or after the commit of a borrowed `conn`.

        `trace` is the trace context that came with the request to dispatch.
        """
        if conn is None:
            encoder = await self._catalog.find(job)
            return self.handle(await self.insert(prepare(encoder, value, options, trace)), job)
        made = await self.dispatch_on(conn, job, value, options, notify=notify, trace=trace)
        if not notify:
            self._sessions.here().wake_later()
        return self.handle(made, job)

    async def dispatch_many(
        self,
        job: Job,
        values: Iterable[Any],
        options: DispatchOptions,
        *,
        conn: Any = None,
        notify: bool = False,
    ) -> int:
        """Dispatch one job per input, all or none; return how many are new."""
        if conn is None:
            encoder = await self._catalog.find(job)
            async with self.transaction() as own:
                return await _insert_many(own, encoder, values, options)
        count = await self.dispatch_many_on(conn, job, values, options, notify=notify)
        if not notify:
            self._sessions.here().wake_later()
        return count

    async def insert(self, job: "PreparedJob", run: RunStatement | None = None) -> Dispatched:
        """Insert one job and wake workers."""
        if run is None:
            run = (await self._sessions.database()).run
        (made,) = await run(job.statement())
        self._sessions.here().wake(is_request=job.new_job.queue == BUILTIN_QUEUE)
        return made

    async def insert_many(
        self, statement: Statement[list[Dispatched]], run: RunStatement
    ) -> list[Dispatched]:
        """Insert many jobs in one statement and wake workers."""
        made = await run(statement)
        self._sessions.here().wake(MANY)
        return made

    async def dispatch_on(
        self,
        conn: Any,
        job: Job,
        value: Any,
        options: DispatchOptions,
        *,
        notify: bool = False,
        trace: str | None = None,
    ) -> Dispatched:
        """Dispatch on a borrowed connection without waking workers.

        This needs an event loop only if the connection does.
        """
        encoder = await self._catalog.find(job, partial(run_on, conn))
        (made,) = await run_on(conn, prepare(encoder, value, options, trace).statement())
        if notify:
            await notify_on(conn, WAKE)
        return made

    async def dispatch_many_on(
        self,
        conn: Any,
        job: Job,
        values: Iterable[Any],
        options: DispatchOptions,
        *,
        notify: bool = False,
    ) -> int:
        """Dispatch many on a borrowed connection without waking workers, all or none."""
        encoder = await self._catalog.find(job, partial(run_on, conn))
        async with all_or_nothing(conn):
            count = await _insert_many(conn, encoder, values, options)
        if notify:
            await notify_on(conn, WAKE)
        return count

    def wake_later(self) -> None:
        """Wake workers for jobs that a caller will commit, if the app is open."""
        self._sessions.wake_later()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Connection[Any]"]:
        """Hold a transaction of the app's own to dispatch in; its commit wakes workers."""
        session = self._sessions.here()
        async with (await session.database()).transaction() as connection:
            yield connection
        session.wake(MANY)

    def handle(self, made: Dispatched, job: Job) -> JobHandle[Any]:
        """Return the handle of a job that was dispatched."""
        return JobHandle(self._app, made.id, job, deduplicated=not made.is_new)


class PreparedJob(NamedTuple):
    """One job that was checked and can be inserted."""

    id: UUID
    new_job: NewJob
    # JSON, or the outcome of the rules of the type's category.
    payload: str | CheckedPayload
    # A job with a key exists once; a key of None is made by the database.
    is_keyed: bool = False
    key: str | None = None

    @property
    def is_batchable(self) -> bool:
        """Whether one insert can write it together with jobs of other types and callers."""
        has_rules = self.is_keyed or isinstance(self.payload, CheckedPayload)
        return not has_rules and jobs.fits_each(self.new_job)

    def for_batch(self) -> tuple[UUID, str, NewJob]:
        """Return the entry of a batchable job in a shared insert."""
        assert isinstance(self.payload, str)
        return self.id, self.payload, self.new_job

    def statement(self) -> Statement[list[Dispatched]]:
        """Return the statement that inserts it alone."""
        if isinstance(self.payload, CheckedPayload):
            return jobs.dispatch_ruled([self.id], [self.payload], self.new_job)
        if self.is_keyed:
            return jobs.dispatch_once([self.id], [self.payload], self.new_job, [self.key])
        return jobs.dispatch([self.id], [self.payload], self.new_job)


def prepare(
    encoder: InputEncoder,
    value: Any,
    options: DispatchOptions,
    trace: str | None = None,
    checked: NewJob | None = None,
) -> PreparedJob:
    """Check one input and its options, and decide about its rules, version, key and trace.

    `checked` are the same options, checked before: many requests of a caller have the same.
    """
    new_job = _new_job(encoder, options, trace) if checked is None else _traced(checked, trace)
    if encoder.job_type.category is not None:
        return PreparedJob(new_id(), new_job, encoder.check_payload(value, options))
    text = encoder.encode_and_warn(value)
    if (version := encoder.payload_version(text, options)) != new_job.payload_version:
        new_job = new_job._replace(payload_version=version)
    given = options.get("idempotency_key")
    if not is_keyed(encoder.job_type, given):
        return PreparedJob(new_id(), new_job, text)
    if given is None:
        return PreparedJob(new_id(), new_job, text, True, encoder.idempotency_key(text))
    key = check_name(given, what="idempotency_key")
    return PreparedJob(new_id(), new_job, text, True, key)


class CheckEach(Protocol):
    """Checks inputs one by one, and decides how many bad ones to look for."""

    def __call__(self, check: Callable[[Any], T], values: Sequence[Any], /) -> list[T]: ...


def prepare_many(
    encoder: InputEncoder,
    values: Sequence[Any],
    options: DispatchOptions,
    check_each: CheckEach,
    trace: str | None = None,
) -> Statement[list[Dispatched]]:
    """Check many inputs of one type, and return the one statement that dispatches them."""
    chunk = _Chunk(0, values, list(islice(new_ids(), len(values))))
    return _insert_chunk(encoder, chunk, options, check_each, _new_job(encoder, options, trace))


class _Chunk(NamedTuple):
    """Some of many inputs: the place of the first, and an id for each."""

    first: int
    values: Sequence[Any]
    ids: list[UUID]


def _insert_chunk(
    encoder: InputEncoder,
    chunk: _Chunk,
    options: DispatchOptions,
    check_each: CheckEach,
    new_job: NewJob,
) -> Statement[list[Dispatched]]:
    first, values, ids = chunk
    if encoder.job_type.category is not None:
        # As they were given: the model of a type may leave out the envelope that its rules need.
        checked = check_each(lambda value: encoder.check_payload(value, options), values)
        return jobs.dispatch_ruled(ids, checked, new_job)
    texts = list(
        _with_versions(encoder, check_each(encoder.encode_and_warn, values), options, first=first)
    )
    if is_keyed(encoder.job_type, None):
        keys = [encoder.idempotency_key(text) for text in texts]
        return jobs.dispatch_once(ids, texts, new_job, keys)
    return jobs.dispatch(ids, texts, new_job)


class BulkJobs(NamedTuple):
    """Many jobs of one type without keys: what they share, and the id and input of each."""

    new_job: NewJob
    records: Iterator[tuple[bytes, str]]


async def _insert_many(
    conn: Any, encoder: InputEncoder, values: Iterable[Any], options: DispatchOptions
) -> int:
    """Insert many jobs in the transaction of a connection; return how many are new."""
    if "idempotency_key" in options:
        raise InvalidValue(
            "one idempotency_key cannot stand for many jobs; declare the job "
            '@forge.job(idempotent="input.…") so that each gets its own'
        )
    # Text and dicts can be gone through as well, letter by letter and key by key.
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise InvalidValue(
            f"dispatch_many takes a list or a generator of inputs, not {type(values).__name__}; "
            "write [input]"
        )
    new_job = _new_job(encoder, options)
    if not is_keyed(encoder.job_type, None):
        texts = _with_versions(encoder, _texts(encoder, values), options)
        # The ids have no end.
        return await copy_on(conn, BulkJobs(new_job, zip(new_id_bytes(), texts, strict=False)))
    count = 0
    for chunk in _chunks(values):
        statement = _insert_chunk(encoder, chunk, options, _numbered(chunk.first), new_job)
        count += sum(made.is_new for made in await run_on(conn, statement))
    return count


def _new_job(encoder: InputEncoder, options: DispatchOptions, trace: str | None = None) -> NewJob:
    return make_new_job(encoder.job_type, traced(encoder.job_type.name, options, trace))


def _traced(new_job: NewJob, trace: str | None) -> NewJob:
    found = traceparent_for(new_job.job_type, trace)
    return new_job if found is None else new_job._replace(traceparent=found)


def _texts(encoder: InputEncoder, values: Iterable[Any]) -> Iterator[str]:
    """Write inputs as JSON; look closely at the first of them, and at a sample of the others."""
    write, rest, done = encoder.encode, iter(values), 0
    try:
        for value in rest:
            text = write(value)
            encoder.examine(text)
            yield text
            done += 1
            if done < FIRST:
                continue
            for value in islice(rest, EVERY - 1):
                yield write(value)
                done += 1
    except InvalidPayload as error:
        raise _misplaced(error, done) from None


def _with_versions(
    encoder: InputEncoder, texts: Iterable[str], options: DispatchOptions, *, first: int = 0
) -> Iterator[str]:
    """Refuse a payload whose own version is none, or differs from the one that was given."""
    for place, text in enumerate(texts, first):
        if VERSION in text:
            _nth(place, encoder.payload_version, text, options)
        yield text


def _nth(place: int, act: Callable[..., T], *args: Any) -> T:
    try:
        return act(*args)
    except InvalidPayload as error:
        raise _misplaced(error, place) from None


def _misplaced(error: InvalidPayload, place: int) -> InvalidPayload:
    return InvalidPayload(f"input {place}: {error}", error.path, error.faults)


def _numbered(first: int) -> CheckEach:
    """Return what checks inputs until one is bad, and names its place in the whole."""

    def check_each(check: Callable[[Any], T], values: Sequence[Any], /) -> list[T]:
        return [_nth(place, check, value) for place, value in enumerate(values, first)]

    return check_each


def _chunks(values: Iterable[Any]) -> Iterator[_Chunk]:
    rest, ids, first = iter(values), new_ids(), 0
    while some := list(islice(rest, CHUNK)):
        yield _Chunk(first, some, list(islice(ids, len(some))))
        first += len(some)
