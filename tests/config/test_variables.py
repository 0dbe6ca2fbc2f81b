"""Unknown FORGE_* variables: typos are rejected, variables of other programs are ignored."""

from pathlib import Path

import pytest

from forge import Config, ConfigError


@pytest.mark.parametrize(
    ("variable", "suggested"),
    [
        ("FORGE_DATABSE_URL", "FORGE_DATABASE_URL"),
        ("FORGE_DATABASEURL", "FORGE_DATABASE_URL"),
        ("FORGE_WROKER_MAX_CONCURRENT", "FORGE_WORKER_MAX_CONCURRENT"),
        ("FORGE_WORKERS_PROCESSES", "FORGE_WORKER_PROCESSES"),
        ("FORGE_APPS", "FORGE_APP"),
        ("FORGE_AUTH_JWT_SECRETS", "FORGE_AUTH_JWT_SECRET"),
        ("FORGE_WORKER_PROCESES", "FORGE_WORKER_PROCESSES"),
    ],
)
def test_a_misspelt_variable_is_rejected_with_a_suggestion(
    file: Path, variable: str, suggested: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.load(file, {variable: "x"})

    assert refused.value.problems == (f"{variable} is not a setting; did you mean {suggested}?",)


def test_a_variable_of_a_section_is_refused_with_those_of_that_section(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[payload\] takes FORGE_PAYLOAD_MAX_INPUT, "):
        Config.load(file, {"FORGE_PAYLOAD_COLOUR": "red"})


@pytest.mark.parametrize(
    "variable",
    [
        "FORGE_HOME",
        "FORGE_TEST_DATABASE",
        "FORGE_TRACEBACK",
        "FORGE_WORKERS",
        "FORGE_SERVICE_HOST",
        "FORGE_DATABASE_SERVICE_PORT",
        "FORGE_DATABASES_URL_SERVICE_HOST",
        "FORGE_SERVER_PORT_8080_TCP_ADDR",
    ],
)
def test_variables_of_other_programs_are_ignored(file: Path, variable: str) -> None:
    assert Config.load(file, {variable: "x"}) == Config()


def test_the_address_of_a_service_is_not_taken_for_a_setting_of_the_same_name(file: Path) -> None:
    assert Config.load(file, {"FORGE_SERVER_PORT": "tcp://10.0.0.7:8080"}) == Config()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "forge.toml"
    path.touch()
    return path
