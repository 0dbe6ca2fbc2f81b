"""A wish becomes rows: in the caller's transaction, or in one of its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from forge.core.errors import InvalidPayload, InvalidValue
from forge.core.key import is_keyed, key_of
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.wish import Options, TypeDefaults, Wish, make_wish
from forge.registry import JobDefinition
from forge.store import jobs
from forge.store.borrowed import copy_on, run_on
from forge.store.ids import new_id, new_id_texts, new_ids
from forge.store.jobs import Dispatched
from forge.store.statement import Statement

CHUNK = 1000


class JobType(NamedTuple):
    """A type to dispatch: its defaults, and its code where this process has it."""

    defaults: TypeDefaults
    definition: JobDefinition[Any, Any] | None
    limit: int = HARD_LIMIT
    check: Callable[[Any], None] | None = None

    def encode(self, value: Any) -> str:
        """Check one input and write it as JSON."""
        if self.definition is not None:
            return self.definition.encode(value, limit=self.limit)
        what = f"the input of {self.defaults.name}"
        text = encode({} if value is None else value, what=what, limit=self.limit)
        if self.check is not None:
            self.check(decode(text))
        return text


class Bulk(NamedTuple):
    """Many jobs of one type: where each comes from, and what they share."""

    wish: Wish
    records: Iterator[tuple[str, str]]


def one(kind: JobType, value: Any, options: Options) -> Statement[list[Dispatched]]:
    """Return the statement that dispatches one job."""
    given = options.get("idempotency_key")
    wish = make_wish(kind.defaults, options)
    text = kind.encode(value)
    if is_keyed(kind.defaults, given):
        key = _key(kind, text, given)
        return jobs.dispatch_once([new_id()], [text], wish, [key])
    return jobs.dispatch([new_id()], [text], wish)


def keyed_chunks(
    kind: JobType, values: Iterable[Any], options: Options
) -> Iterator[Statement[list[Dispatched]]]:
    """Yield statements that dispatch many jobs, each once per key."""
    wish = make_wish(kind.defaults, options)
    fresh = new_ids()
    for chunk in _chunks(values):
        texts = [_encode_nth(kind, value, place) for place, value in chunk]
        keys = [_key(kind, text, None) for text in texts]
        yield jobs.dispatch_once(list(islice(fresh, len(texts))), texts, wish, keys)


def bulk(kind: JobType, values: Iterable[Any], options: Options) -> Bulk:
    """Return many jobs without keys, ready to be copied."""
    return Bulk(make_wish(kind.defaults, options), _records(kind, values))


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
    if not is_keyed(kind.defaults, None):
        return await copy_on(conn, bulk(kind, values, options))
    count = 0
    for statement in keyed_chunks(kind, values, options):
        count += sum(made.is_new for made in await run_on(conn, statement))
    return count


def _key(kind: JobType, text: str, given: str | None) -> str | None:
    """Make the key of what is stored: a function of the input is given what the handler will be."""
    plain = decode(text)
    checked = plain if kind.definition is None else kind.definition.decode(text)
    return key_of(kind.defaults, checked, plain, given)


def _records(kind: JobType, values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    write = kind.encode
    fresh = new_id_texts()
    done = 0
    try:
        for value in values:
            yield next(fresh), write(value)
            done += 1
    except InvalidPayload as error:
        raise InvalidPayload(f"input {done}: {error}", error.path) from None


def _encode_nth(kind: JobType, value: Any, place: int) -> str:
    try:
        return kind.encode(value)
    except InvalidPayload as error:
        raise InvalidPayload(f"input {place}: {error}", error.path) from None


def _chunks(values: Iterable[Any]) -> Iterator[Sequence[tuple[int, Any]]]:
    numbered = enumerate(values)
    while chunk := list(islice(numbered, CHUNK)):
        yield chunk
