"""Which databases an app may open in a test run."""

import pytest

from forge.config.test_guard import VARIABLE, NotATestDatabase, check_database, guard_databases


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    guard_databases()


@pytest.mark.parametrize("name", ["test", "test_shop", "shop_test", "shop_tests", "a_test_run_1_2"])
def test_databases_of_tests_may_be_opened(guarded: None, name: str) -> None:
    check_database(f"postgresql://ann@localhost/{name}")


@pytest.mark.parametrize("name", ["shop", "latest", "contest", "testimony"])
def test_other_databases_are_refused(guarded: None, name: str) -> None:
    with pytest.raises(NotATestDatabase, match=f'"{name}" at localhost'):
        check_database(f"postgresql://ann:secret@localhost/{name}")
    with pytest.raises(NotATestDatabase, match="embedded"):
        check_database(None)


def test_more_names_can_be_allowed(guarded: None) -> None:
    guard_databases(["ci_*"])

    check_database("postgresql://localhost/ci_7")


def test_nothing_is_refused_outside_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    check_database("postgresql://localhost/shop")
    check_database(None)
