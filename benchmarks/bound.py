"""A bound that a figure must satisfy, written as `≥ 0.7` or `≤ 0.7`."""

import click


def keeps(value: float, bound: str) -> bool:
    """Return whether a value satisfies its bound."""
    sign, limit = bound.split()
    return value <= float(limit) if sign == "≤" else value >= float(limit)


def judged(name: str, value: float, bound: str, detail: str = "") -> bool:
    """Print a figure with its bound, and return whether it satisfies the bound."""
    mark = "ok  " if keeps(value, bound) else "MISS"
    click.echo(f"{mark} {name:62} {value:10,.2f} ({bound})  {detail}".rstrip())
    return keeps(value, bound)
