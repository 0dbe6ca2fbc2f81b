"""COPY: many jobs of one type at the speed of the disk, and constant memory."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from forge.core.job_columns import COLUMNS
from forge.core.new_job import NewJob
from forge.core.payload_rules import VERSION, version_in
from forge.store import binary
from forge.store.statement import Statement, load, nothing

BLOCK = 500
UTF8 = "UTF8"
_VERSION = VERSION.encode()


class CopyData(NamedTuple):
    """What is copied into forge_jobs: which columns, and their values, some hundred rows a block.

    In PostgreSQL's binary format: the server reads it in nine tenths of the time of text, and the
    codecs that a caller's connection has for jsonb or uuid cannot touch it.
    """

    columns: tuple[str, ...]
    blocks: Iterator[bytes]


class CopyTerms(NamedTuple):
    """What COPY meets on a connection."""

    is_refused: bool
    encoding: str


def as_copy(new_job: NewJob, records: Iterable[tuple[bytes, str]]) -> CopyData:
    """Write jobs as COPY takes them, in UTF-8; a delay has to be made a time before."""
    # The version is each payload's own where it has one, and last so that the rest can be shared.
    shared = {
        name: value
        for name, value in new_job._asdict().items()
        if value is not None and name != "payload_version" and COLUMNS[name].default != value
    }
    columns = ("id", "input", *shared, "payload_version")
    end = b"".join(
        binary.field(binary.encoder(COLUMNS[name].type)(value)) for name, value in shared.items()
    )
    return CopyData(columns, _blocks(records, len(columns), end, new_job.payload_version))


def time_after(delay: timedelta) -> Statement[datetime]:
    return Statement(load("jobs/time_after"), (delay,), lambda found: found[0]["at"])


def copy_terms() -> Statement[CopyTerms]:
    return Statement(load("jobs/copy_terms"), (), lambda found: CopyTerms(**found[0]))


def speak(encoding: str) -> Statement[None]:
    """Have text sent in that encoding until the end of the transaction."""
    return Statement(load("transaction/speak"), (encoding,), nothing)


def _blocks(
    records: Iterable[tuple[bytes, str]], columns: int, shared: bytes, version: str
) -> Iterator[bytes]:
    end = shared + binary.field(version.encode())
    begin, size = binary.begin_row(columns) + binary.UUID_SIZE, binary.size
    rows = ((id, input.encode()) for id, input in records)
    yield binary.HEADER
    while chunk := list(islice(rows, BLOCK)):
        block = b"".join(
            [
                # As binary.jsonb would write it, without a call for each.
                b"%b%b%b\1%b%b" % (begin, id, size(len(input) + 1), input, end)
                for id, input in chunk
            ]
        )
        # Looked for once in a block: few payloads have a version of their own.
        if _VERSION in block:
            block = b"".join(
                [
                    begin + id + binary.field(b"\1" + input) + shared + _own_version(input, version)
                    for id, input in chunk
                ]
            )
        yield block
    yield binary.TRAILER


def _own_version(input: bytes, version: str) -> bytes:
    return binary.field((version_in(input.decode()) or version).encode())
