"""A wish becomes rows: in the caller's transaction, or in one of its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from forge.core.errors import InvalidPayload, InvalidValue
from forge.core.key import is_keyed
from forge.core.rules import VERSION, Ruled
from forge.core.wish import Options, Wish, check_name, make_wish
from forge.job_type import JobType
from forge.lookout import EVERY, FIRST
from forge.store import jobs
from forge.store.borrowed import copy_on, run_on
from forge.store.ids import new_id, new_id_bytes, new_ids
from forge.store.jobs import Dispatched
from forge.store.statement import Statement
from forge.telemetry.trace_source import traced

CHUNK = 1000
T = TypeVar("T")


class Bulk(NamedTuple):
    """Many jobs of one type: where each comes from, and what they share."""

    wish: Wish
    records: Iterator[tuple[bytes, str]]


def one(kind: JobType, value: Any, options: Options) -> Statement[list[Dispatched]]:
    """Return the statement that dispatches one job."""
    wish = _wish(kind, options)
    if kind.defaults.category is not None:
        return _dispatch_ruled([kind.rule(value, options)], wish)
    text = kind.written(value)
    if (version := kind.versioned(text, options)) != wish.payload_version:
        wish = wish._replace(payload_version=version)
    given = options.get("idempotency_key")
    if is_keyed(kind.defaults, given):
        key = kind.key(text) if given is None else check_name(given, what="idempotency_key")
        return jobs.dispatch_once([new_id()], [text], wish, [key])
    return jobs.dispatch([new_id()], [text], wish)


def many(kind: JobType, texts: Sequence[str], options: Options) -> Statement[list[Dispatched]]:
    """Return the one statement that dispatches many jobs, whose inputs are written already."""
    wish = _wish(kind, options)
    texts = list(_with_versions(kind, texts, options))
    ids = list(islice(new_ids(), len(texts)))
    if is_keyed(kind.defaults, None):
        return jobs.dispatch_once(ids, texts, wish, [kind.key(text) for text in texts])
    return jobs.dispatch(ids, texts, wish)


def many_ruled(
    kind: JobType, ruled: Sequence[Ruled], options: Options
) -> Statement[list[Dispatched]]:
    """Return the one statement that dispatches many jobs with a category, checked by its rules."""
    return _dispatch_ruled(ruled, _wish(kind, options))


def keyed_chunks(
    kind: JobType, values: Iterable[Any], options: Options
) -> Iterator[Statement[list[Dispatched]]]:
    """Yield statements that dispatch many jobs, each once per key."""
    wish = _wish(kind, options)
    fresh = new_ids()
    for chunk in _chunks(values):
        if kind.defaults.category is not None:
            yield _dispatch_ruled([_nth(n, kind.rule, value, options) for n, value in chunk], wish)
            continue
        written = [_nth(n, kind.written, value) for n, value in chunk]
        texts = list(_with_versions(kind, written, options, first=chunk[0][0]))
        keys = [kind.key(text) for text in texts]
        yield jobs.dispatch_once(list(islice(fresh, len(texts))), texts, wish, keys)


def bulk(kind: JobType, values: Iterable[Any], options: Options) -> Bulk:
    """Return many jobs without keys, ready to be copied."""
    texts = _with_versions(kind, _texts(kind, values), options)
    records = zip(new_id_bytes(), texts, strict=False)  # the ids have no end
    return Bulk(_wish(kind, options), records)


async def one_on(conn: Any, kind: JobType, value: Any, options: Options) -> Dispatched:
    """Dispatch one job on a connection, whose transaction decides about it."""
    (made,) = await run_on(conn, one(kind, value, options))
    return made


async def many_on(conn: Any, kind: JobType, values: Iterable[Any], options: Options) -> int:
    """Dispatch many jobs on a connection, whose transaction decides about them; return how many."""
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
    if not is_keyed(kind.defaults, None):
        return await copy_on(conn, bulk(kind, values, options))
    count = 0
    for statement in keyed_chunks(kind, values, options):
        count += sum(made.is_new for made in await run_on(conn, statement))
    return count


def _wish(kind: JobType, options: Options) -> Wish:
    return make_wish(kind.defaults, traced(kind.defaults.name, options))


def _dispatch_ruled(ruled: Sequence[Ruled], wish: Wish) -> Statement[list[Dispatched]]:
    return jobs.dispatch_ruled(list(islice(new_ids(), len(ruled))), ruled, wish)


def _texts(kind: JobType, values: Iterable[Any]) -> Iterator[str]:
    """Write inputs as JSON; look closely at the first of them, and at a sample of the others."""
    write, rest, done = kind.encode, iter(values), 0
    try:
        for value in rest:
            text = write(value)
            kind.examine(text)
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
    kind: JobType, texts: Iterable[str], options: Options, *, first: int = 0
) -> Iterator[str]:
    """Refuse a payload whose own version is none, or differs from the one that was given."""
    for place, text in enumerate(texts, first):
        if VERSION in text:
            _nth(place, kind.versioned, text, options)
        yield text


def _nth(place: int, act: Callable[..., T], *args: Any) -> T:
    try:
        return act(*args)
    except InvalidPayload as error:
        raise _misplaced(error, place) from None


def _misplaced(error: InvalidPayload, place: int) -> InvalidPayload:
    return InvalidPayload(f"input {place}: {error}", error.path, error.faults)


def _chunks(values: Iterable[Any]) -> Iterator[Sequence[tuple[int, Any]]]:
    numbered = enumerate(values)
    while chunk := list(islice(numbered, CHUNK)):
        yield chunk
