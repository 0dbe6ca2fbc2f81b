"""State machines on the real database: how they reach it, and how they are run."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from forge.store.connection.database import Database
from forge.store.statement import Statement


class DatabaseMachine(RuleBasedStateMachine):
    """Drives the database and a model together; its steps are no coroutines, so that it waits."""

    runner: asyncio.Runner
    database: Database

    def _run(self, statement: Statement[Any]) -> Any:
        return self._await(self.database.run(statement))

    def _fetch(self, sql: str, *args: Any) -> Any:
        return self._run(Statement(sql, args, list))

    def _await(self, work: Any) -> Any:
        return self.runner.run(work)


def run_machine(
    machine: type[DatabaseMachine], database_url: str, *, examples: int, steps: int = 40
) -> None:
    """Try this many orders of its steps."""
    with asyncio.Runner() as runner:
        machine.runner, machine.database = runner, Database(database_url)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                suppress_health_check=list(HealthCheck),
            ),
        )
        runner.run(machine.database.close())
