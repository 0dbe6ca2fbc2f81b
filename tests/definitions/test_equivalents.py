"""Errors name the equivalent of what an application of another library calls."""

import re
from typing import Any

import pytest

from forge import Forge, InvalidValue, JobContext
from forge.core.equivalents import (
    ATTRIBUTES,
    OF_A_CONTEXT,
    OF_A_JOB,
    OF_AN_APP,
    OPTIONS,
    PROCRASTINATE,
    RQ,
    library_of,
)
from forge.core.new_job import DispatchOptions
from forge.definitions.job import JobDefinition
from forge.definitions.signature import attributes_of

app = Forge(database_url="postgresql://unused")


@app.job
async def welcome(ctx: JobContext, input: dict[str, Any]) -> None: ...


@pytest.mark.parametrize("name", OF_A_JOB)
def test_method_of_a_task_names_its_equivalent(name: str) -> None:
    assert not hasattr(welcome, name)
    with pytest.raises(AttributeError, match=f"welcome has no '{name}' as in {library_of(name)}: "):
        getattr(welcome, name)


@pytest.mark.parametrize("name", OF_AN_APP)
def test_attribute_of_an_app_names_its_equivalent(name: str) -> None:
    with pytest.raises(AttributeError, match=f"app has no '{name}' as in {library_of(name)}: "):
        getattr(app, name)


@pytest.mark.parametrize("name", OF_A_CONTEXT)
def test_attribute_of_a_bound_task_names_its_equivalent(name: str) -> None:
    context = object.__new__(JobContext)

    with pytest.raises(AttributeError, match=f"ctx has no '{name}' as in {library_of(name)}: "):
        getattr(context, name)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_argument_of_a_task_names_its_equivalent(name: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(f"no attribute {name!r}; {ATTRIBUTES[name]}")):
        app.job(**{name: 3})


@pytest.mark.parametrize("name", OPTIONS)
async def test_argument_of_a_dispatch_names_its_equivalent(name: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(f"no option {name!r}; {OPTIONS[name]}")):
        await app.dispatch(welcome, {}, **{name: 3})


def test_names_of_a_library_are_known() -> None:
    assert {*OF_A_JOB, *OF_A_CONTEXT, *OF_AN_APP} >= PROCRASTINATE | RQ
    assert [library_of(name) for name in ("delay", "defer", "enqueue")] == [
        "Celery",
        "procrastinate",
        "RQ",
    ]


def test_no_name_of_forge_is_refused() -> None:
    assert ATTRIBUTES.keys().isdisjoint(attributes_of(JobDefinition))
    assert OPTIONS.keys().isdisjoint(DispatchOptions.__annotations__)
    for owner, names in ((Forge, OF_AN_APP), (JobContext, OF_A_CONTEXT), (JobDefinition, OF_A_JOB)):
        assert names.keys().isdisjoint(dir(owner))


def test_error_inside_a_property_stays_what_it_is() -> None:
    class Broken(Forge):
        @property
        def stock(self) -> int:
            return {}.stock  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'dict' object has no attribute 'stock'"):
        _ = Broken(database_url="postgresql://unused").stock
