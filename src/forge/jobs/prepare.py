"""Checks inputs and options, and decides which statement inserts them; nothing is sent here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from forge.core.errors import InvalidPayload, InvalidValue
from forge.core.idempotency import is_keyed
from forge.core.job import BUILTIN_QUEUE
from forge.core.new_job import DispatchOptions, NewJob, check_name, make_new_job
from forge.core.payload_rules import VERSION, CheckedPayload
from forge.definitions.input_encoder import InputEncoder
from forge.definitions.payload_warnings import EVERY, FIRST
from forge.store import jobs
from forge.store.ids import new_id, new_id_bytes, new_ids
from forge.store.jobs import Dispatched
from forge.store.statement import Statement
from forge.telemetry.logs.attempt_records import current_job_id
from forge.telemetry.traces import traced, traceparent_for

CHUNK = 1000
T = TypeVar("T")


class PreparedJob(NamedTuple):
    """One checked job, ready to insert."""

    id: UUID
    new_job: NewJob
    # JSON, or the outcome of the rules of the type's category.
    payload: str | CheckedPayload
    # A job with a key exists once; the database computes a key that is None.
    is_keyed: bool = False
    key: str | None = None

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of Forge's own jobs, which busy workers run, too."""
        return self.new_job.queue == BUILTIN_QUEUE

    @property
    def is_batchable(self) -> bool:
        """Whether one insert can write it together with jobs of other types and callers.

        A job with a key cannot: it waits for another transaction that holds the same key, and
        every job in its batch would wait with it.
        """
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

    `checked` is the result for the same options from an earlier call: many requests of one caller
    have the same options.
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
    """Checks inputs one by one, and decides how many invalid ones to report."""

    def __call__(self, check: Callable[[Any], T], values: Sequence[Any], /) -> list[T]: ...


def prepare_many(
    encoder: InputEncoder,
    values: Sequence[Any],
    options: DispatchOptions,
    check_each: CheckEach,
    trace: str | None = None,
) -> Statement[list[Dispatched]]:
    """Check many inputs of one type, and return the one statement that inserts them."""
    chunk = _Chunk(0, values, list(islice(new_ids(), len(values))))
    return _insert_chunk(encoder, chunk, options, check_each, _new_job(encoder, options, trace))


class BulkJobs(NamedTuple):
    """Jobs of one type for COPY: the columns they share, and the id and input of each."""

    new_job: NewJob
    records: Iterator[tuple[bytes, str]]


def prepare_bulk(
    encoder: InputEncoder, values: Iterable[Any], options: DispatchOptions
) -> BulkJobs | Iterator[Statement[list[Dispatched]]]:
    """Check any number of inputs while they are sent: by COPY, or in chunks if each has a key."""
    if "idempotency_key" in options:
        raise InvalidValue(
            "one idempotency_key cannot stand for many jobs; declare the job "
            '@forge.job(idempotent="input.…") so that each gets its own'
        )
    # Strings and dicts are iterable, too, but their items are not inputs.
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise InvalidValue(
            f"dispatch_many takes a list or a generator of inputs, not {type(values).__name__}; "
            "write [input]"
        )
    new_job = _new_job(encoder, options)
    if is_keyed(encoder.job_type, None):
        return (
            _insert_chunk(encoder, chunk, options, _check_until_invalid(chunk.first), new_job)
            for chunk in _chunks(values)
        )
    texts = _check_versions(encoder, _encode_all(encoder, values), options)
    # The iterator of ids is endless.
    return BulkJobs(new_job, zip(new_id_bytes(), texts, strict=False))


class _Chunk(NamedTuple):
    """Some of many inputs: the position of the first, and an id for each."""

    first: int
    values: Sequence[Any]
    ids: list[UUID]


def _chunks(values: Iterable[Any]) -> Iterator[_Chunk]:
    remaining, ids, first = iter(values), new_ids(), 0
    while chunk := list(islice(remaining, CHUNK)):
        yield _Chunk(first, chunk, list(islice(ids, len(chunk))))
        first += len(chunk)


def _insert_chunk(
    encoder: InputEncoder,
    chunk: _Chunk,
    options: DispatchOptions,
    check_each: CheckEach,
    new_job: NewJob,
) -> Statement[list[Dispatched]]:
    first, values, ids = chunk
    if encoder.job_type.category is not None:
        # The inputs as given: the model of a type may drop the envelope that its rules require.
        checked = check_each(lambda value: encoder.check_payload(value, options), values)
        return jobs.dispatch_ruled(ids, checked, new_job)
    texts = list(
        _check_versions(encoder, check_each(encoder.encode_and_warn, values), options, first=first)
    )
    if is_keyed(encoder.job_type, None):
        keys = [encoder.idempotency_key(text) for text in texts]
        return jobs.dispatch_once(ids, texts, new_job, keys)
    return jobs.dispatch(ids, texts, new_job)


def _new_job(encoder: InputEncoder, options: DispatchOptions, trace: str | None = None) -> NewJob:
    given = traced(encoder.job_type.name, options, trace)
    return make_new_job(encoder.job_type, given, current_job_id())


def _traced(new_job: NewJob, trace: str | None) -> NewJob:
    found = traceparent_for(new_job.job_type, trace)
    return new_job if found is None else new_job._replace(traceparent=found)


def _encode_all(encoder: InputEncoder, values: Iterable[Any]) -> Iterator[str]:
    """Encode inputs as JSON; look for sensitive content in the first ones, then in a sample."""
    encode, remaining, position = encoder.encode, iter(values), 0
    try:
        for value in remaining:
            text = encode(value)
            encoder.examine(text)
            yield text
            position += 1
            if position < FIRST:
                continue
            for value in islice(remaining, EVERY - 1):
                yield encode(value)
                position += 1
    except InvalidPayload as error:
        raise _at_position(error, position) from None


def _check_versions(
    encoder: InputEncoder, texts: Iterable[str], options: DispatchOptions, *, first: int = 0
) -> Iterator[str]:
    """Reject a payload whose own version is invalid or differs from the option."""
    for position, text in enumerate(texts, first):
        if VERSION in text:
            _call_at(position, encoder.payload_version, text, options)
        yield text


def _check_until_invalid(first: int) -> CheckEach:
    """Return a check that stops at the first invalid input and reports its position."""

    def check_each(check: Callable[[Any], T], values: Sequence[Any], /) -> list[T]:
        return [_call_at(position, check, value) for position, value in enumerate(values, first)]

    return check_each


def _call_at(position: int, check: Callable[..., T], *args: Any) -> T:
    try:
        return check(*args)
    except InvalidPayload as error:
        raise _at_position(error, position) from None


def _at_position(error: InvalidPayload, position: int) -> InvalidPayload:
    return InvalidPayload(f"input {position}: {error}", error.path, error.faults)
