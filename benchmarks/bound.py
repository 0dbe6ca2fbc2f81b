"""A bound that a figure must keep, written as people write it: `≥ 0.7`."""

import click


def keeps(value: float, bound: str) -> bool:
    """Say whether a value keeps its bound."""
    sign, limit = bound.split()
    return value <= float(limit) if sign == "≤" else value >= float(limit)


def judged(name: str, value: float, bound: str, told: str = "") -> bool:
    """Print a figure beside its bound, and return whether it keeps it."""
    mark = "ok  " if keeps(value, bound) else "MISS"
    click.echo(f"{mark} {name:62} {value:10,.2f} ({bound})  {told}".rstrip())
    return keeps(value, bound)
