"""In a test run, keeps apps from opening a database that is not a test's."""

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase

from forge.core.database_url import connection_target
from forge.core.errors import ForgeError

# Patterns of names, separated by commas. In the environment, so that processes that a test starts
# obey it, too.
VARIABLE = "FORGE_TEST_DATABASES"
# Not *test*, which "latest" and "contest" match.
TEST_NAMES = ("test", "tests", "test_*", "*_test", "*_tests", "*_test_*", "test-*", "*-test")


class NotATestDatabase(ForgeError):
    """An app would have opened a database that no test made, such as the one of development."""


def guard_databases(patterns: Iterable[str] = TEST_NAMES) -> None:
    """From now on, let this process and those that it starts open databases of these names only."""
    os.environ[VARIABLE] = ",".join(patterns)


def check_database(url: str | None) -> None:
    """Raise NotATestDatabase in a test run, unless the URL names a test's; None is the embedded."""
    if not (patterns := os.environ.get(VARIABLE)):
        return
    if url is None:
        raise NotATestDatabase(
            "the app would have opened its embedded PostgreSQL, which is the database of "
            f"development, in a test run; {_REMEDY}"
        )
    target = connection_target(url, os.environ)
    name = target.database or target.user or ""
    if not any(fnmatchcase(name, pattern) for pattern in patterns.split(",")):
        raise NotATestDatabase(
            f"the app would have opened the database {target.place} in a test run, and its name is "
            f"not one of a test database ({patterns.replace(',', ', ')}); {_REMEDY}. If it is one, "
            "add its name to forge_databases in the settings of pytest"
        )


_REMEDY = "use the fixture forge_app in this test, or dispatch with conn="
