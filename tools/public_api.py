"""The public API of the package as text, one line per name, so that each change of it is a diff.

It is read from the source, so that optional packages need not be installed.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

SOURCE = Path(__file__).parent.parent / "src"
# Public modules, with their public names where a module has no __all__.
MODULES: dict[str, tuple[str, ...]] = {
    "forge": (),
    "forge.core.events": ("AttemptEnded", "Event"),
    "forge.core.sensitive.redact": ("redact", "redact_text", "secrets_in"),
    "forge.http": (),
    "forge.http.auth.access": ("Identity", "Role"),
    "forge.http.auth.authenticator": ("Authenticator", "unauthenticated"),
    "forge.integrations.aws": ("client",),
    "forge.integrations.django": (),
    "forge.integrations.django.asgi": ("mount",),
    "forge.integrations.django.models": (
        "Attempt",
        "AuditEvent",
        "DeadLetter",
        "Job",
        "Schedule",
        "Worker",
    ),
    "forge.integrations.fastapi": (),
    "forge.integrations.structlog": ("add_attempt",),
    "forge.telemetry.traces": ("trace",),
    "forge.testing": (),
    "forge.testing.plugin": (
        "forge_app",
        "forge_database_url",
        "forge_databases",
        "forge_target",
        "forge_worker",
    ),
    "forge.testing.sync": (
        "advance",
        "assert_dispatched",
        "assert_not_dispatched",
        "call",
        "dispatched",
        "run_all",
        "run_one",
    ),
}
# Other classes are made by Forge: how is not public.
MADE_BY_USERS = {"Authenticator", "Forge", "Identity", "Retry", "Snooze", "Worker"}
# Neither is what only other parts of Forge use.
INTERNAL: dict[str, set[str]] = {
    "AttemptLog": {"add_progress", "holds_back", "receive", "take"},
    "CallDefinition": {"app", "arguments", "encode_output", "output_adapter"},
    "Config": {"from_mapping"},
    "DeadLetters": {"running"},
    "Events": {
        "began",
        "begin_listeners",
        "completed",
        "completion_listeners",
        "emit",
        "notice",
        "other_listeners",
    },
    "Forge": {
        "bulk_actions",
        "call_runner",
        "calls",
        "catalog",
        "classifier",
        "definitions",
        "dispatcher",
        "middlewares",
        "observers",
        "schedule_definitions",
        "session",
        "sessions",
        "watcher",
    },
    "JobContext": {
        "add_lines",
        "add_note",
        "has_logged",
        "has_noted",
        "holds_lines",
        "is_committing",
        "is_noted_as_it_goes",
        "job",
        "keeps_log",
        "lived_at",
        "note",
        "noting",
        "put_back",
        "run",
        "stale",
        "take_lines",
        "take_note",
        "transaction",
    },
    "JobDefinition": {
        "app",
        "decode_input",
        "decode_output",
        "encode_input",
        "encode_output",
        "handler_kind",
        "input_adapter",
        "output_adapter",
    },
    "JobHandle": {"app"},
    "ScheduleContext": {"definition", "is_noted_as_it_goes", "keeps_log", "noting"},
    "ScheduleDefinition": {"dispatch", "encode_output", "not_a_job"},
    "Schedules": {"carry_out", "editor", "plant", "read", "waking"},
    "Section": {"model_config"},
    "SyncHandle": {"app"},
    "Worker": {"app", "events", "registration", "settings", "started"},
    "Workers": {"running"},
}
# Constants and parameters of types.
NOT_SHOWN = {"MAX_TENANT_ID", "P"}
SPECIAL = {"__init__", "__call__"}
HEADER = """\
# The public API of the package forge-jobs, from its source; `make format` writes this file.
# versions.md says what is public and how it changes. openapi.json has the HTTP API, cli.md the
# commands, configuration.md the settings, tables.md the tables and functions in the database.
"""
REACHED = "What these names take and return; import them from no module"


def public_api() -> str:
    """Return the text of docs/reference/public-api.txt."""
    package = griffe.load("forge", search_paths=[SOURCE], allow_inspection=False)
    sections: dict[str, list[griffe.Object]] = {}
    for module, names in MODULES.items():
        found = _target(package.modules_collection[module])
        sections[module] = [_target(found[name]) for name in names or map(str, found.exports or ())]
    public = {each.path: each for section in sections.values() for each in section}
    reached = _reached(public)
    sections[REACHED] = [each for path, each in reached.items() if path not in public]
    return "\n".join([HEADER, *(_section(title, found) for title, found in sections.items())])


def _section(title: str, found: Iterable[griffe.Object]) -> str:
    entries = sorted(("\n".join(_lines(each)) for each in found), key=str.lower)
    return "\n".join([f"## {title}", "", *entries, ""])


def _lines(found: griffe.Object) -> Iterator[str]:
    if not isinstance(found, griffe.Class):
        yield from _value(found, "")
        return
    bases = ", ".join(str(base) for base in found.bases)
    yield f"class {found.name}{f'({bases})' if bases else ''}"
    for member in sorted(_members(found), key=lambda each: each.name):
        yield from _value(member, "    ")


def _value(found: griffe.Object, indent: str) -> Iterator[str]:
    if isinstance(found, griffe.Function):
        start = "async def" if "async" in found.labels else "def"
        methods = [label for label in ("classmethod", "staticmethod") if label in found.labels]
        marks = "".join(f"@{method} " for method in methods)
        for each in _signatures(found):
            returns = "" if each.returns is None else f" -> {each.returns}"
            parameters = _parameters(each)
            yield f"{indent}{marks}{start} {found.name}({parameters}){returns}"
    elif isinstance(found, griffe.Attribute):
        typed = "" if found.annotation is None else f": {found.annotation}"
        is_property = "property" in found.labels
        is_alias = found.annotation is None or found.parent is None or found.parent.is_module
        is_set_later = "instance-attribute" in found.labels
        value = "" if is_property or is_set_later or not is_alias else f" = {found.value}"
        kind = " (property)" if is_property and "writable" not in found.labels else ""
        yield f"{indent}{found.name}{typed}{value}{kind}"


def _signatures(found: griffe.Function) -> list[griffe.Function]:
    """Return the overloads of a function, or itself."""
    parent = found.parent
    overloads = (
        parent.overloads.get(found.name)
        if isinstance(parent, griffe.Class | griffe.Module)
        else None
    )
    return list(overloads or [found])


def _parameters(found: griffe.Function) -> str:
    text = str(found.signature(return_type=False))
    return text[text.index("(") + 1 : text.rindex(")")]


def _members(found: griffe.Class) -> Iterator[griffe.Object]:
    hidden = INTERNAL.get(found.name, set())
    overloaded = {name: each[0] for name, each in found.overloads.items() if each}
    for name, member in {**overloaded, **found.members}.items():
        if member.is_alias or name in hidden or (name.startswith("_") and name not in SPECIAL):
            continue
        if name != "__init__" or _is_made_by_users(found):
            yield _target(member)


def _is_made_by_users(found: griffe.Class) -> bool:
    return found.name in MADE_BY_USERS or _is_error(found)


def _is_error(found: griffe.Class) -> bool:
    return any(str(base) == "Exception" or "Error" in str(base) for base in found.bases)


def _reached(public: dict[str, griffe.Object]) -> dict[str, griffe.Object]:
    """Return classes and type aliases of Forge that the public names mention, and these in turn."""
    reached: dict[str, griffe.Object] = {}
    waiting = list(public.values())
    while waiting:
        each = waiting.pop()
        if each.path not in reached:
            reached[each.path] = each
            waiting += [found for found in _mentioned(each) if found.path not in reached]
    return reached


def _mentioned(found: griffe.Object) -> Iterator[griffe.Object]:
    for expression in _expressions(found):
        if isinstance(expression, griffe.Expr):
            for each in expression.iterate(flat=True):
                if isinstance(each, griffe.ExprName) and each.canonical_path.startswith("forge."):
                    yield from _at(found, each.canonical_path)


def _expressions(found: griffe.Object) -> Iterator[griffe.Expr | str | None]:
    """Return the bases, annotations and, for type aliases, values in a definition."""
    if isinstance(found, griffe.Class):
        yield from found.bases
        for member in _members(found):
            yield from _expressions(member)
    elif isinstance(found, griffe.Function):
        for each in _signatures(found):
            yield each.returns
            yield from (parameter.annotation for parameter in each.parameters)
    elif isinstance(found, griffe.Attribute):
        yield found.annotation
        if found.parent is not None and found.parent.is_module:
            yield found.value


def _at(owner: griffe.Object, path: str) -> Iterator[griffe.Object]:
    """Return the class or type alias with a path; parameters of a class have paths, too."""
    try:
        found = _target(owner.modules_collection[path])
    except KeyError:
        return
    if isinstance(found, griffe.Class) or (
        isinstance(found, griffe.Attribute) and _is_alias(found)
    ):
        yield found


def _is_alias(found: griffe.Attribute) -> bool:
    return found.name not in NOT_SHOWN and "TypeVar" not in str(found.value)


def _target(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found
