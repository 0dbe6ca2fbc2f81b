"""Schedules in a worker: the handlers of their types, and what becomes of their runs."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from forge.core.errors import InvalidValue
from forge.core.job import Job
from forge.core.outcome import Ack, Failure, Outcome, Raised, Released
from forge.core.run import Conclusion, Run, as_ack, conclude, rule_of
from forge.core.schedule import Rule
from forge.schedules.definition import ScheduleDefinition
from forge.store.jobs import Note
from forge.worker.concluder import Concluder


class Recurrence:
    """Knows the types of schedules that this worker runs, and concludes their runs."""

    def __init__(
        self, definitions: Mapping[str, ScheduleDefinition[Any]], concluder: Concluder
    ) -> None:
        self.definitions = definitions
        self.rules = {name: definition.rule for name, definition in definitions.items()}
        self.concluder = concluder

    def settle(self, run: Run, outcome: Outcome, note: Note | None, seconds: float) -> Ack:
        """Decide what becomes of a schedule, have it written, and say it in the words of jobs."""
        definition = self.definitions[run.type]
        try:
            conclusion = concluded(run, definition, outcome, seconds)
        except InvalidValue as error:
            # Somebody wrote a rule into the row that cannot be read, or this machine does not know
            # its time zone.
            told = f"its next run cannot be planned: {error}"
            failed = Raised(Failure("forge.InvalidValue", told, ""))
            conclusion = concluded(run, definition, failed, seconds, rule=Rule())
        self.concluder.conclude(conclusion, note)
        return as_ack(run, conclusion)

    def release(self, held: Sequence[Job], *, have_begun: bool = False) -> None:
        """Give back the runs among these."""
        outcome = Released(have_begun)
        for run in held:
            if isinstance(run, Run):
                rule = run.schedule.rule
                self.concluder.conclude(
                    conclude(run, outcome, rule=rule, retry=None, seconds=0.0, chance=0.0)
                )


def concluded(
    run: Run,
    definition: ScheduleDefinition[Any],
    outcome: Outcome,
    seconds: float,
    rule: Rule | None = None,
) -> Conclusion:
    """Decide what becomes of a schedule of this type, by its own rule or by the one given."""
    return conclude(
        run,
        outcome,
        rule=rule_of(run.schedule, definition.rule) if rule is None else rule,
        retry=definition.retry,
        seconds=seconds,
        chance=random.random(),
    )
