"""Databases for tests: copies of a migrated template, or one database that is emptied."""

import hashlib
import re
import secrets
from contextlib import suppress
from typing import Any

from forge.core.database_url import with_database
from forge.core.errors import ForgeError
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import DRIVER_ERRORS, translated
from forge.store.connection.link import close_quietly
from forge.store.migrate import as_sql, migrate
from forge.store.statement import load

# The names that this module gives begin with these words; the guard of test runs lets them pass.
TEMPLATE = "forge_test_template_"
COPY = "forge_test_run_"
# The classes of advisory locks: of runs, which hold their own number, and of what they prepare.
RUN_LOCK, PREPARE_LOCK = 0x466F7254, 0x466F7250
_OF_A_RUN = re.compile(rf"{COPY}(\d+)_\d+")


class DatabaseServer:
    """Creates and drops the databases of one test run on one server.

    Those of a run that was killed are dropped by the next one: a run holds a lock with its number.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.run_number = secrets.randbelow(2**31)
        self._count = 0
        self._objects: str | None = None
        self._template = TEMPLATE + hashlib.sha256(as_sql().encode()).hexdigest()[:12]

    async def open(self) -> None:
        """Connect, drop what dead runs left behind, and see to it that the template exists."""
        self._database = Database(self.url)
        try:
            self._connection = await self._database.connect(planned=False)
        except DRIVER_ERRORS as error:
            raise translated(error, self._database.place) from error
        await self._connection.execute(load("testing/lock"), RUN_LOCK, self.run_number)

    async def may_create(self) -> bool:
        """Whether the login may create databases."""
        return bool(await self._connection.fetchval(load("bench/may_create")))

    async def prepare(self) -> None:
        """Make the template, and drop what other versions and dead runs left behind."""
        connection = self._connection
        await connection.execute(load("testing/lock"), PREPARE_LOCK, 0)
        try:
            await self._drop_leftovers()
            known = await self._names(TEMPLATE)
            if self._template not in known:
                for old in known:
                    # another version of Forge may be copying it
                    with suppress(ForgeError):
                        await self._drop(old)
                await self._make_template()
        finally:
            await connection.execute(load("testing/unlock"), PREPARE_LOCK, 0)

    async def create(self) -> str:
        """Create a database with Forge's tables, and return its URL."""
        self._count += 1
        name = f"{COPY}{self.run_number}_{self._count}"
        await self._command("testing/copy_database", name, self._template)
        return with_database(self.url, name)

    async def renew(self, url: str) -> bool:
        """Empty a database that `create` has made; False if that does not make it a new one.

        That takes a tenth of the time that a new copy takes, but it only deletes rows of Forge.
        """
        used = Database(url)
        try:
            connection = await used.connect(planned=False)
        except DRIVER_ERRORS:
            return False
        try:
            await connection.execute(load("testing/end_sessions"))
            objects = await connection.fetchval(load("testing/objects"))
            if objects != await self._objects_of_template():
                return False
            await connection.execute(await connection.fetchval(load("testing/empty")))
            return True
        except DRIVER_ERRORS:
            return False
        finally:
            await close_quietly(connection)
            await used.close()

    async def drop(self, url: str) -> None:
        """Drop a database that `create` has made."""
        await self._drop(_name_in(url))

    async def lock_own(self) -> None:
        """Wait until no other process uses the database of the URL itself, and migrate it."""
        await self._connection.execute(load("testing/lock"), PREPARE_LOCK, 0)
        await migrate(self._database)

    async def unlock_own(self) -> None:
        """Let other processes use the database of the URL itself."""
        await self._connection.execute(load("testing/unlock"), PREPARE_LOCK, 0)

    async def empty_own(self) -> None:
        """Empty Forge's tables in the database of the URL itself."""
        await self._command("testing/empty")

    async def close(self) -> None:
        """Drop the databases of this run that are left, and disconnect."""
        for name in await self._names(f"{COPY}{self.run_number}_"):
            await self._drop(name)
        await close_quietly(self._connection)
        await self._database.close()

    async def _drop_leftovers(self) -> None:
        for name in await self._names(COPY):
            found = _OF_A_RUN.fullmatch(name)
            if found is None or int(found[1]) == self.run_number:
                continue
            lock = (RUN_LOCK, int(found[1]))
            if await self._connection.fetchval(load("testing/try_lock"), *lock):
                await self._drop(name)
                await self._connection.execute(load("testing/unlock"), *lock)

    async def _make_template(self) -> None:
        unfinished = f"{COPY}{self.run_number}_0"
        await self._command("bench/create_database", unfinished)
        made = Database(with_database(self.url, unfinished))
        await migrate(made)
        connection = await made.connect(planned=False)
        objects = await connection.fetchval(load("testing/objects"))
        await close_quietly(connection)
        await made.close()
        await self._command("testing/describe_database", unfinished, objects)
        await self._command("testing/rename_database", unfinished, self._template)

    async def _objects_of_template(self) -> str:
        # In a comment: while a session is connected to a database, it cannot be copied.
        if self._objects is None:
            found = await self._fetch("testing/description", self._template)
            self._objects = str(found[0]["description"]) if found else ""
        return self._objects

    async def _names(self, prefix: str) -> list[str]:
        pattern = prefix.replace("_", r"\_") + "%"
        return [row["name"] for row in await self._fetch("testing/databases", pattern)]

    async def _drop(self, name: str) -> None:
        await self._command("bench/drop_database", name)

    async def _command(self, command: str, *args: str) -> None:
        """Run the command that a statement writes: the names of databases cannot be parameters."""
        try:
            text = await self._connection.fetchval(load(command), *args)
            await self._connection.execute(text)
        except DRIVER_ERRORS as error:
            raise translated(error, self._database.place) from error

    async def _fetch(self, name: str, *args: Any) -> list[Any]:
        found: list[Any] = await self._connection.fetch(load(name), *args)
        return found


def _name_in(url: str) -> str:
    found = re.search(rf"{COPY}\d+_\d+", url)
    if found is None:
        raise ForgeError(f"{url} is no database of a test run")
    return found[0]
