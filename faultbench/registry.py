"""The rows of the table: each a number, a fault, a promise, and the scenario that shows it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faultbench.stage import Stage

Scenario = Callable[["Stage"], Awaitable[None]]
ROWS: "dict[int, FaultRow]" = {}


@dataclass(frozen=True)
class FaultRow:
    """A fault, what must hold, and how it is shown."""

    number: int
    fault: str
    promise: str
    scenario: Scenario
    runs: int
    # One run that takes longer than this has failed.
    timeout: float
    # Runs tests of the suite instead of a scenario of its own.
    is_pytest: bool = False


def fault(
    number: int,
    fault: str,
    promise: str,
    *,
    runs: int = 1,
    timeout: float = 240,
    is_pytest: bool = False,
) -> Callable[[Scenario], Scenario]:
    """Register a scenario under the number of its row."""

    def register(scenario: Scenario) -> Scenario:
        if number in ROWS:
            raise ValueError(f"row {number} is registered twice")
        ROWS[number] = FaultRow(number, fault, promise, scenario, runs, timeout, is_pytest)
        return scenario

    return register
