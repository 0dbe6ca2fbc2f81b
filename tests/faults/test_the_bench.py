"""The bench is tested too: each engine that is broken on purpose is caught by its check."""

from __future__ import annotations

import pytest

from tests.faults.kit.ledger import Gate
from tests.faults.kit.proxy import Proxy
from tests.faults.scenes import Scene


async def test_the_checker_catches_an_engine_without_a_fence(scene: Scene, gate: Gate) -> None:
    """Fault 3."""
    await scene.zombie(gate, broken="no fence")

    verdict = await scene.verdict()

    assert verdict.stale == (str(scene.job),), verdict


async def test_the_checker_catches_a_rescue_of_the_living(scene: Scene, gate: Gate) -> None:
    """Faults 1 and 10."""
    verdict = await scene.living_neighbour(gate, broken="rescue by id")

    assert verdict.unexplained, verdict


async def test_a_sound_engine_leaves_the_living_alone(scene: Scene, gate: Gate) -> None:
    """Faults 1 and 10."""
    verdict = await scene.living_neighbour(gate)

    assert not verdict.faults, verdict


async def test_the_checker_catches_heartbeats_on_the_loop(scene: Scene) -> None:
    """Fault 10."""
    verdict = await scene.blocked_loop(seconds=6, broken="heartbeat on the loop")

    assert verdict.unexplained, verdict


async def test_a_listener_without_a_poll_is_caught(scene: Scene, proxy: Proxy) -> None:
    """Fault 15."""
    with pytest.raises(AssertionError, match=r"in vain until: job .* is completed"):
        await scene.silent_listener(proxy, broken="listener without poll", patience=5)

    assert (await scene.ledger.job(scene.job))["status"] == "pending"
