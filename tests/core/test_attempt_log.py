"""The lines of an attempt are bounded in number and in rate, and the newest is never lost."""

from forge.core.attempt_log import BoundedLines, LogLine


def numbers(lines: list[LogLine]) -> list[int]:
    return [line.number for line in lines]


def test_the_first_lines_are_kept_at_once_and_then_one_a_second() -> None:
    lines = BoundedLines("log", 3)

    for n in range(10):
        lines.add(100.0 + n / 1000, f"line {n}")
    first = lines.take(100.5)
    later = lines.take(101.5)

    assert numbers(first) == [1, 2, 3]
    assert numbers(later) == [10]
    assert not lines.is_held


def test_a_line_that_is_held_is_kept_at_the_end() -> None:
    lines = BoundedLines("log", 1)
    for n in range(3):
        lines.add(0.0, f"line {n}")

    kept = lines.take(0.1) + lines.take(0.2, is_end=True)

    assert [line.message for line in kept] == ["line 0", "line 2"]


def test_a_newer_line_takes_the_place_of_the_oldest() -> None:
    lines = BoundedLines("progress", 2)

    kept = []
    for n in range(4):
        lines.add(float(n), f"line {n}")
        kept += lines.take(float(n))

    assert [(line.slot, line.message) for line in kept] == [
        (0, "line 0"),
        (1, "line 1"),
        (0, "line 2"),
        (1, "line 3"),
    ]
