"""The checks themselves work: each engine that is broken on purpose is caught."""

from __future__ import annotations

import pytest

from tests.faults.kit.ledger import Gate
from tests.faults.kit.proxy import Proxy
from tests.faults.scenarios import Scenario


async def test_the_checker_catches_an_engine_without_a_fence(
    scenario: Scenario, gate: Gate
) -> None:
    """Fault 3."""
    await scenario.zombie(gate, broken="no fence")

    verdict = await scenario.verdict()

    assert verdict.stale == (str(scenario.job),), verdict


async def test_the_checker_catches_a_rescue_of_live_workers(scenario: Scenario, gate: Gate) -> None:
    """Faults 1 and 10."""
    verdict = await scenario.live_neighbour(gate, broken="rescue by id")

    assert verdict.unexplained, verdict


async def test_the_real_engine_does_not_rescue_live_workers(scenario: Scenario, gate: Gate) -> None:
    """Faults 1 and 10."""
    verdict = await scenario.live_neighbour(gate)

    assert not verdict.faults, verdict


async def test_the_checker_catches_heartbeats_on_the_event_loop(scenario: Scenario) -> None:
    """Fault 10."""
    verdict = await scenario.blocked_loop(seconds=6, broken="heartbeat on the loop")

    assert verdict.unexplained, verdict


async def test_a_listener_without_a_poll_is_caught(scenario: Scenario, proxy: Proxy) -> None:
    """Fault 15."""
    with pytest.raises(AssertionError, match=r"Timed out after .* s: job .* is completed"):
        await scenario.silent_listener(proxy, broken="listener without poll", timeout=5)

    assert (await scenario.ledger.job(scenario.job))["status"] == "pending"
