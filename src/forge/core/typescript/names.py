"""The TypeScript names of job types and models; two of them never share one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from forge.core.errors import InvalidValue
from forge.core.typescript.schema_types import Schema, definition_key
from forge.core.typescript.text import pascal_case, type_name

# Names that the generated file exports from Forge's client.
CLIENT_VALUES = ("configure", "ForgeClient", "ForgeError")
CLIENT_TYPES = ("ConnectionState", "JobTracker", "StartOptions", "TrackedJob", "TrackerOptions")


class DescribedJob(NamedTuple):
    """A job type with the JSON Schemas of its input and output."""

    name: str
    doc: str | None
    # None: the handler takes no input.
    input: Schema | None
    output: Schema
    # Whether the type has a rule for idempotency keys.
    makes_keys: bool = False


class NamedJob(NamedTuple):
    """A job type with its TypeScript names; `create…Job` and `use…Job` contain the stem."""

    described: DescribedJob
    stem: str
    # None: the handler takes no input.
    input: str | None
    output: str

    @property
    def roots(self) -> list[tuple[str, Schema]]:
        """The names and schemas of its types."""
        given = [] if self.input is None else [(self.input, self.described.input)]
        return [*given, (self.output, self.described.output)]


class Names(NamedTuple):
    """The job types by name, and the TypeScript name of each definition."""

    jobs: list[NamedJob]
    models: dict[str, str]


def name_all(jobs: Iterable[DescribedJob], definitions: Mapping[str, Schema]) -> Names:
    """Name job types and models, or raise InvalidValue where two get one name."""
    owners = _Owners()
    named = [_name_job(job, owners) for job in sorted(jobs, key=lambda job: job.name)]
    return Names(named, _name_models(named, definitions, owners))


class _Owners:
    """Remembers what each name stands for."""

    def __init__(self) -> None:
        self._owners = dict.fromkeys((*CLIENT_VALUES, *CLIENT_TYPES), "a name of Forge's client")

    def claim(self, name: str, owner: str) -> str:
        known = self._owners.setdefault(name, owner)
        if known != owner:
            raise InvalidValue(f"{known} and {owner} both become {name}; rename one of them")
        return name


def _name_job(job: DescribedJob, owners: _Owners) -> NamedJob:
    stem = pascal_case(job.name)
    if not stem:
        raise InvalidValue(
            f"the name of job type {job.name!r} has no letter or digit for a TypeScript name; "
            "rename it with @forge.job(name=…)"
        )
    owners.claim(f"create{stem}Job", f"job type {job.name!r}")
    input_name = None if job.input is None else type_name(f"{stem}Input")
    output_name = type_name(f"{stem}Output")
    for name, what in ((input_name, "input"), (output_name, "output")):
        if name is not None:
            owners.claim(name, f"the {what} of job type {job.name!r}")
    return NamedJob(job, stem, input_name, output_name)


def _name_models(
    jobs: list[NamedJob], definitions: Mapping[str, Schema], owners: _Owners
) -> dict[str, str]:
    """Name the definitions; one that is the input or output of one job type gets its name."""
    types = [root for job in jobs for root in job.roots]
    uses = _references([*definitions.values(), *(schema for _, schema in types)])
    roots = [(definition_key(schema), name) for name, schema in types]
    root_names = {name: key for key, name in roots}
    alone = {key: name for key, name in roots if key is not None and uses[key] == 1}
    names = {}
    for key in sorted(definitions):
        name = alone.get(key) or type_name(pascal_case(key))
        if root_names.get(name) != key:
            owners.claim(name, f"the model {key.replace('__', '.')!r}")
        names[key] = name
    return names


def _references(value: Any) -> Counter[str]:
    """Count the references to definitions in schemas."""
    found: Counter[str] = Counter()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as schema:
                found.update([key] if (key := definition_key(schema)) else [])
                waiting.extend(schema.values())
            case list() as items:
                waiting.extend(items)
    return found
