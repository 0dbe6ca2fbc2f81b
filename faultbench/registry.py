"""The rows of the table: each has a number, a fault, a promise and a scenario that tests it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faultbench.stage import Stage

Scenario = Callable[["Stage"], Awaitable[None]]
ROWS: "dict[int, FaultRow]" = {}


@dataclass(frozen=True)
class FaultRow:
    """A fault, what must hold, and the scenario that tests it."""

    number: int
    fault: str
    promise: str
    scenario: Scenario
    runs: int
    # A run that takes longer than this fails.
    timeout: float
    # The row runs these tests of the suite (pytest node ids) instead of its own scenario.
    tests: tuple[str, ...] = ()

    @property
    def is_pytest(self) -> bool:
        return bool(self.tests)


def fault(
    number: int,
    fault: str,
    promise: str,
    *,
    runs: int = 1,
    timeout: float = 240,
    tests: tuple[str, ...] = (),
) -> Callable[[Scenario], Scenario]:
    """Register a scenario under the number of its row."""

    def register(scenario: Scenario) -> Scenario:
        if number in ROWS:
            raise ValueError(f"row {number} is registered twice")
        ROWS[number] = FaultRow(number, fault, promise, scenario, runs, timeout, tests)
        return scenario

    return register
