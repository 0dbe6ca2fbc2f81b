"""Statements on forge_idempotency_keys."""

from typing import Any

from forge.store.statement import Statement, load


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("idempotency_keys/prune"), (keep_seconds, limit), list)
