"""The lists that follow from the table of job columns, in .sql files and in the reference.

In a statement a list stands between `/* generated <list> */` and `/* end */`, and `$6 /* queue */`
is the parameter of that name, whose number is generated. Everything else is written by hand.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path

from forge.core.job_columns import CLAIMED_AS, COLUMNS, JOB_COLUMNS, LANE, OPTIONS
from forge.core.job_filter import JobFilter
from forge.core.new_job import DispatchOptions
from forge.jobs.context import JobContext
from forge.store.jobs import PARAMETERS
from forge.store.listing import FILTERED

ROOT = Path(__file__).parent.parent
STATEMENTS = (
    *PARAMETERS,
    "jobs/claim",
    "jobs/claim_across",
    "messages/claim",
    "dead_letters/reprocess",
    "functions/dispatch",
    "roles/2_api",
    *FILTERED,
)
WIDTH = 100
# Columns that lists can leave out.
PAYLOADS = ("input", "output", "checkpoint", "meta")
# The fields of JobFilter that are no column of the same name.
CONDITIONS = {
    "statuses": "({0}::text[] is null or status = any ({0}))",
    "since": "({0}::timestamptz is null or created_at >= {0})",
    "until": "({0}::timestamptz is null or created_at < {0})",
    "tag": "({0}::text is null or {0} = any (tags))",
}


def job_column_files() -> dict[str, Callable[[], str]]:
    """Return the files with generated lists, and for each what makes its text."""
    statements = {f"src/forge/sql/{name}.sql": partial(statement, name) for name in STATEMENTS}
    return {**statements, **{f"docs/reference/{n}.md": partial(page, n) for n in _TABLES}}


def statement(name: str) -> str:
    """Return a statement with its lists and the numbers of its parameters as they should be."""
    text = (ROOT / f"src/forge/sql/{name}.sql").read_text()
    numbers = _numbers(name, text)
    lists = _lists(name, text, numbers)
    text = _LIST.sub(lambda found: _written(lists[found["list"]], **found.groupdict()), text)
    return _NAMED.sub(lambda found: f"${numbers[found['name']]} /* {found['name']} */", text)


def page(name: str) -> str:
    """Return a page of the reference with its generated table as it should be."""
    text = (ROOT / f"docs/reference/{name}.md").read_text()
    before, begin, _, end, after = _TABLE.split(text)
    return "".join([before, begin, "\n\n", "\n".join(_TABLES[name]()), "\n\n", end, after])


_LIST = re.compile(r"(?P<indent> *)/\* generated (?P<list>[a-z ]+) \*/.*?/\* end \*/", re.DOTALL)
_NAMED = re.compile(r"\$\d+ /\* (?P<name>(?!end )\w+) \*/")
_TABLE = re.compile(r"(<!-- generated[^>]* -->)(.*?)(<!-- end -->)", re.DOTALL)


def _numbers(name: str, text: str) -> dict[str, int]:
    """Number the parameters of a statement that dispatches: those for each job come first."""
    by_hand = [int(n) for n in re.findall(r"\$(\d+)", _NAMED.sub("", _LIST.sub("", text)))]
    return {
        field: n for n, field in enumerate(PARAMETERS.get(name, ()), max(by_hand, default=0) + 1)
    }


def _lists(name: str, text: str, numbers: Mapping[str, int]) -> dict[str, list[str]]:
    claimed = [column.name for column in JOB_COLUMNS if column.is_claimed]
    copied = [column.name for column in JOB_COLUMNS if column.is_copied]
    by_hand = _names(r"insert into forge_jobs\s+\(([^)]*?)/\*", text)
    plain = [field for field in numbers if field not in {"delay", *by_hand}]
    arguments = _names(r"function forge_dispatch\((.*?)/\*", text)
    further = [name for name, o in OPTIONS.items() if o.sql and name not in arguments]
    return {
        # jobs/dispatch…
        "columns": plain,
        "values": [f"${numbers[n]}" + "::text::jsonb" * _is_json(n) for n in plain],
        "values of each": [n + "::jsonb" * _is_json(n) for n in plain],
        "lists": [f"${number}::{_argument_type(n)}[]" for n, number in numbers.items()],
        "names": list(numbers),
        # …/claim
        "claim": [CLAIMED_AS.get(n, n) for n in claimed],
        "claim within a lane": [CLAIMED_AS.get(n, n) for n in claimed if n not in LANE],
        # dead_letters/reprocess
        "copies": copied,
        "copies of old": [f"old.{n}" for n in copied],
        # roles/2_api
        "grants": [column.name for column in JOB_COLUMNS if column.is_granted],
        # jobs/page…, jobs/count…
        "all but payloads": [c.name for c in JOB_COLUMNS if c.name not in PAYLOADS],
        "filter": [_condition(f.name, n) for n, f in enumerate(fields(JobFilter), 1)],
        # functions/dispatch, whose own lists these continue
        "arguments": ["", *(f"{n} {_sql_type(n)} default null" for n in further)],
        "checks": [_check(n) for n in further],
        "more columns": ["", *further],
        "more values": ["", *(f"forge_dispatch.{n}" for n in further)],
    }


def _names(between: str, text: str) -> list[str]:
    """Return the first word of each line or entry in what a pattern finds."""
    found = re.search(between, re.sub(r"--.*", "", text), re.DOTALL)
    return [] if found is None else re.findall(r"(?:^|,)\s*(\w+)", found[1])


def _written(items: list[str], indent: str, list: str) -> str:
    begin = f"{indent}/* generated {list} */"
    if not any(items):
        return f"{begin} /* end */"
    if list == "checks":
        return "\n".join([begin, *(indent + item for item in items), f"{indent}/* end */"])
    # Entries are not broken at their spaces.
    joined = (
        (" and " if list == "filter" else ", ")
        .join(item.replace(" ", "\0") for item in items)
        .removeprefix(" ")
    )
    lines = textwrap.wrap(joined, WIDTH - len(indent), break_on_hyphens=False)
    return "\n".join([begin, *(indent + line.replace("\0", " ") for line in lines)]) + " /* end */"


def _is_json(name: str) -> bool:
    return _sql_type(name) == "jsonb"


def _sql_type(name: str) -> str:
    """Return the type without a length: that is the column's to check."""
    return "interval" if name == "delay" else re.sub(r"varchar\(\d+\)", "text", COLUMNS[name].type)


def _argument_type(name: str) -> str:
    # Drivers pass JSON as text, so that no codec of theirs changes it.
    return "text" if _is_json(name) else _sql_type(name)


def _condition(name: str, number: int) -> str:
    """Return the condition of a field of JobFilter, whose value is the parameter of that number."""
    if (condition := CONDITIONS.get(name)) is not None:
        return condition.format(f"${number}")
    return f"(${number}::{_sql_type(name)} is null or {name} = ${number})"


def _check(name: str) -> str:
    """Return what refuses a bad argument of forge_dispatch()."""
    argument = f"forge_dispatch.{name}"
    match _sql_type(name):
        case "text":
            check = f"perform forge_check_name({argument}, '{name}')"
            return f"if {argument} is not null then {check}; end if;"
        case "text[]":
            return f"perform forge_check_name(item, '{name}') from unnest({argument}) as item;"
        case "jsonb":
            return f"perform forge_check_json({argument}, '{name}');"
        case "timestamptz":
            return f"perform forge_check_moment({argument}, '{name}');"
        case _:
            return f"-- {name}: its type is enough"


def _options() -> Iterable[str]:
    yield "| option | meaning | also accepted by |"
    yield "|---|---|---|"
    for name in DispatchOptions.__annotations__:
        option = OPTIONS[name]
        also = {"HTTP": option.http, "SQL": option.sql, "CLI": option.cli is not None}
        yield f"| `{name}` | {option.meaning} | {', '.join(n for n, it in also.items() if it)} |"


def _columns() -> Iterable[str]:
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for column in JOB_COLUMNS:
        yield f"| `{column.name}` | `{column.type}` | {column.meaning} |"


def _context() -> Iterable[str]:
    yield "| attribute | what it is |"
    yield "|---|---|"
    for column in JOB_COLUMNS:
        if column.option is not None and column.reaches == "handler":
            attribute = getattr(JobContext, column.name, None)
            if attribute is None:
                raise LookupError(f"JobContext in jobs/context.py lacks {column.name!r}; add it")
            doc = " ".join((inspect.getdoc(attribute) or "").split())
            yield f"| `{column.name}` | {doc.removesuffix('.')} |"


_TABLES: Mapping[str, Callable[[], Iterable[str]]] = {
    "dispatch": _options,
    "tables": _columns,
    "context": _context,
}
