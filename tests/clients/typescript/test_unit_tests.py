"""The client's own tests, which vitest runs."""

from tools.node import run


def test_vitest_passes(node_packages: None) -> None:
    ended = run("npm", "test")

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
