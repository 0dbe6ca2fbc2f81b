"""The steps of a job that the diagrams show, checked against the statements and the lifecycle."""

from pathlib import Path
from typing import NamedTuple

from forge.core.lifecycle import Status, Verb, after

SQL = Path(__file__).parents[2] / "src" / "forge" / "sql"


class Row(NamedTuple):
    """What a job's row says."""

    status: Status = Status.PENDING
    lease: int = 0

    def __str__(self) -> str:
        return f"{self.status}, lease {self.lease}"


def apply(row: Row, *verbs: Verb) -> Row:
    """Return the row after these verbs, or refuse what the lifecycle refuses."""
    status = after(row.status, *verbs)
    if status is None:
        raise ValueError(f"the lifecycle has no {' and '.join(verbs)} from {row.status}")
    return Row(status, row.lease + verbs.count(Verb.CLAIM))


def statement(name: str) -> str:
    """Return the file name of a statement that exists."""
    if not (file := SQL / f"{name}.sql").is_file():
        raise ValueError(f"there is no statement sql/{name}.sql")
    return file.name
