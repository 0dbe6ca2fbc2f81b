"""Figures for people: rates, durations, percentages, and sparklines."""

import sys
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
# For terminals without these characters.
PLAIN_BARS = "_.:-=+*#"
NOTHING = " "
_UNITS = (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1))


def sparkline(values: Sequence[float | None], width: int = 60, *, bars: str | None = None) -> str:
    """Draw values as one line of bars, the highest as a full one; None leaves a gap.

    >>> sparkline([0, 1, 4, None, 8], bars=BARS)
    '▁▂▅ █'
    """
    bars = bars or (BARS if _has_bars() else PLAIN_BARS)
    shown = _joined(values, width)
    top = max((value for value in shown if value is not None), default=0.0)
    return "".join(NOTHING if value is None else _bar(bars, value, top) for value in shown)


def milliseconds(value: float | None) -> str:
    """Format a duration.

    >>> milliseconds(12.4), milliseconds(3100), milliseconds(250_000), milliseconds(None)
    ('12 ms', '3.1 s', '4 m 10 s', '-')
    """
    if value is None:
        return "-"
    if value < 1000:
        return f"{value:.0f} ms" if value >= 10 or value == 0 else f"{value:.2g} ms"
    seconds = value / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    for unit, length, smaller, part in _UNITS:
        if seconds >= length:
            count, rest = divmod(seconds, length)
            return f"{count:.0f} {unit} {rest // part:.0f} {smaller}"
    raise AssertionError("the last unit takes a minute and more")


def duration(seconds: float) -> str:
    """Format a duration of seconds and more.

    >>> duration(4.2), duration(0.3), duration(250)
    ('4 s', '0 s', '4 m 10 s')
    """
    return f"{seconds:.0f} s" if seconds < 60 else milliseconds(seconds * 1000)


def per_minute(value: float) -> str:
    """Format a rate.

    >>> per_minute(1240), per_minute(0.25)
    ('1,240 /min', '0.25 /min')
    """
    return f"{value:,.0f} /min" if value >= 10 or not value else f"{value:.2g} /min"


def percent(value: float | None) -> str:
    """Format a percentage.

    >>> percent(0.42), percent(12.0), percent(None)
    ('0.4 %', '12 %', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f} %" if value >= 10 or not value else f"{value:.1f} %"


def _has_bars() -> bool:
    return (sys.stdout.encoding or "ascii").lower().startswith("utf")


def _joined(values: Sequence[float | None], width: int) -> Sequence[float | None]:
    """Show the highest of neighbouring values where there are too many."""
    if len(values) <= width:
        return values
    joined: list[float | None] = []
    for place in range(width):
        part = values[place * len(values) // width : (place + 1) * len(values) // width]
        joined.append(max((value for value in part if value is not None), default=None))
    return joined


def _bar(bars: str, value: float, top: float) -> str:
    return bars[0] if top <= 0 else bars[min(int(value / top * len(bars)), len(bars) - 1)]
