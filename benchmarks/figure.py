"""A measured figure: all repetitions and the best of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One quantity, measured several times; the best value is the least disturbed one."""

    name: str
    unit: str
    values: tuple[float, ...]
    lower_is_better: bool = False

    @property
    def best(self) -> float:
        return min(self.values) if self.lower_is_better else max(self.values)

    @property
    def spread(self) -> float:
        """Return the distance between the worst and the best value, relative to the best."""
        return (max(self.values) - min(self.values)) / self.best

    def as_json(self) -> Mapping[str, object]:
        """Return the figure as plain values for a report."""
        return {
            "name": self.name,
            "unit": self.unit,
            "best": self.best,
            "spread": round(self.spread, 3),
            "values": list(self.values),
        }


def table(figures: Iterable[Figure]) -> str:
    """Format figures as an aligned text table."""
    heading = ("what", "best", "unit", "spread", "all")
    return _aligned([heading, *(_cells(figure) for figure in figures)])


def _cells(figure: Figure) -> Sequence[str]:
    values = " ".join(_number(value) for value in figure.values)
    return figure.name, _number(figure.best), figure.unit, f"{figure.spread:.0%}", values


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
