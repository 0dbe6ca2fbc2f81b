"""The generated modules, and names that two types would share."""

from typing import Any

import pytest

from forge.core.errors import InvalidValue
from forge.core.typescript.modules import COPIED, PACKAGE, copied_module, generated_modules
from forge.core.typescript.names import DescribedJob

USER = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REFERENCE = {"$ref": "#/$defs/User"}


def job(name: str, input: Any = None, output: Any = None, **attributes: Any) -> DescribedJob:
    return DescribedJob(name, attributes.pop("doc", None), input, output or {}, **attributes)


def index(*jobs: DescribedJob, **definitions: Any) -> str:
    return generated_modules([*jobs], definitions, COPIED)["index.ts"]


def test_a_job_type_becomes_types_and_a_tracker() -> None:
    text = index(job("billing.export-users", USER, {"type": "integer"}, doc="Export users."))

    assert text.endswith(
        """
export interface BillingExportUsersInput {
  name: string;
}

export type BillingExportUsersOutput = number;

/** Export users. */
export function createBillingExportUsersJob(
  options?: TrackerOptions<BillingExportUsersInput>,
): JobTracker<BillingExportUsersInput, BillingExportUsersOutput> {
  return createJobTracker("billing.export-users", options);
}
"""
    )


def test_a_job_type_becomes_a_hook() -> None:
    modules = generated_modules([job("export_users", USER, doc="Export users.")], {}, COPIED)

    assert modules["react.ts"].endswith(
        """
/** Export users. */
export function useExportUsersJob(
  options?: TrackerOptions<ExportUsersInput>,
): TrackerHook<ExportUsersInput, ExportUsersOutput> {
  return useTracker(() => createExportUsersJob(options));
}
"""
    )


def test_neither_framework_s_module_imports_the_other() -> None:
    for client in (COPIED, PACKAGE):
        modules = generated_modules([job("export_users", USER)], {}, client)

        assert "react" not in modules["index.ts"].lower()
        assert "svelte" not in modules["react.ts"].lower()
        assert client.main in modules["index.ts"]
        assert client.react in modules["react.ts"]


def test_a_job_type_without_an_input_starts_without_an_argument() -> None:
    text = index(job("nightly", None, {"type": "null"}))

    assert "JobTracker<void, NightlyOutput>" in text
    assert "NightlyInput" not in text


def test_a_job_type_with_a_rule_for_keys_says_so() -> None:
    assert 'createJobTracker("pay", options, { keyed: true })' in index(job("pay", makes_keys=True))


def test_a_model_of_one_job_type_gets_the_name_of_its_input() -> None:
    text = index(job("greet", REFERENCE), User=USER)

    assert "export interface GreetInput {" in text
    assert "User" not in text


def test_a_model_that_several_types_use_keeps_its_name() -> None:
    text = index(job("greet", REFERENCE, REFERENCE), User=USER)

    assert "export interface User {" in text
    assert "export type GreetInput = User;" in text
    assert "export type GreetOutput = User;" in text


def test_a_recursive_model_keeps_its_name() -> None:
    tree = {"properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}

    text = index(job("walk", {"$ref": "#/$defs/Tree"}), Tree=tree)

    assert "export interface Tree {\n  children?: Tree[];\n}" in text
    assert "export type WalkInput = Tree;" in text


def test_a_model_with_the_name_of_its_job_type_s_input_is_declared_once() -> None:
    text = index(
        job("greet", {"$ref": "#/$defs/GreetInput"}),
        job("other", {"$ref": "#/$defs/GreetInput"}),
        GreetInput=USER,
    )

    assert text.count("export interface GreetInput") == 1
    assert "export type OtherInput = GreetInput;" in text


def test_a_long_union_takes_a_line_per_alternative() -> None:
    values = [f"value_{number:03}" for number in range(20)]

    text = index(job("pick", {"enum": values}))

    assert 'export type PickInput =\n  | "value_000"\n  | "value_001"\n' in text


def test_members_have_descriptions_formats_and_defaults() -> None:
    at = {"type": "string", "format": "date-time", "default": "now", "description": "When."}
    model = {"properties": {"at": at, "old": {"deprecated": True}}, "required": ["old"]}

    text = index(job("plan", model))

    assert (
        '  /**\n   * When.\n   * @format date-time\n   * @default "now"\n   */\n  at?: string;'
        in text
    )
    assert "  /** @deprecated */\n  old: unknown;" in text


def test_the_order_of_job_types_and_models_does_not_matter() -> None:
    jobs = [job("b", {"$ref": "#/$defs/User"}), job("a", {"$ref": "#/$defs/Team"}, REFERENCE)]
    team = {"properties": {"lead": REFERENCE}}

    first = generated_modules(jobs, {"User": USER, "Team": team}, COPIED)
    second = generated_modules(jobs[::-1], {"Team": team, "User": USER}, COPIED)

    assert first == second


@pytest.mark.parametrize(
    ("jobs", "definitions", "owners"),
    [
        ([job("a.b"), job("a_b")], {}, ["job type 'a.b'", "job type 'a_b'"]),
        (
            [job("list", {"properties": {"a": {"$ref": "#/$defs/user"}, "b": REFERENCE}})],
            {"user": USER, "User": USER},
            ["the model 'User'", "the model 'user'"],
        ),
        (
            [
                job("greet", USER),
                job("list", {"type": "array", "items": {"$ref": "#/$defs/GreetInput"}}),
            ],
            {"GreetInput": USER},
            ["the input of job type 'greet'", "the model 'GreetInput'"],
        ),
        (
            [job("list", {"type": "array", "items": {"$ref": "#/$defs/shop__JobTracker"}})],
            {"shop__JobTracker": USER, "Shop.JobTracker": USER},
            ["the model 'shop.JobTracker'", "the model 'Shop.JobTracker'"],
        ),
        (
            [job("list", {"type": "array", "items": {"$ref": "#/$defs/ForgeError"}})],
            {"ForgeError": USER},
            ["Forge's client", "the model 'ForgeError'"],
        ),
    ],
)
def test_two_types_of_one_name_are_an_error_that_names_both(
    jobs: list[DescribedJob], definitions: dict[str, Any], owners: list[str]
) -> None:
    with pytest.raises(InvalidValue, match="both become") as raised:
        generated_modules(jobs, definitions, COPIED)

    assert all(owner in str(raised.value) for owner in owners)


def test_a_name_without_a_letter_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="'---' has no letter or digit"):
        index(job("---"))


def test_an_app_without_job_types_has_modules() -> None:
    modules = generated_modules([], {}, COPIED)

    assert "createJobTracker" not in modules["index.ts"]
    assert "ForgeClient" in modules["index.ts"]
    assert modules["react.ts"].endswith("export {};\n")


def test_relative_imports_have_no_extension() -> None:
    copied = copied_module(
        "import { a } from './a.js';\n"
        'export type { B } from "../live/b.js";\n'
        "import './c.js';\n"
        "const d = await import('./d.js');\n"
        "import react from 'react';\n"
        "const text = './e.js';\n"
    )
    modules = generated_modules([job("export_users")], {}, COPIED)

    assert copied.endswith(
        "import { a } from './a';\n"
        'export type { B } from "../live/b";\n'
        "import './c';\n"
        "const d = await import('./d');\n"
        "import react from 'react';\n"
        "const text = './e.js';\n"
    )
    assert ".js" not in "".join(modules.values())
