"""The layers of the packages, from the import contract in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from tools.diagrams.drawing import Drawing

ROOT = Path(__file__).parents[2]
LEFT, WIDTH, ROW, GAP = 30, 560, 34, 14
ARROWS = LEFT + 0.6 * WIDTH  # above a box in each layer
SQL = "sql"  # statements, which the contract cannot name: they are no modules


def layers() -> str:
    rows = [re.findall(r"\w+", layer) for layer in contract()]
    rows[-1].append(SQL)
    height = 2 * 24 + len(rows) * (ROW + GAP) - GAP
    drawing = Drawing(2 * LEFT + WIDTH + 190, height, "Packages import only packages below them")
    for number, names in enumerate(rows):
        top = 24 + number * (ROW + GAP)
        width = (WIDTH - GAP * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            drawing.box((LEFT + place * (width + GAP), top), (width, ROW), [name])
        if number:
            drawing.arrow([(ARROWS, top - GAP), (ARROWS, top - 1)])
        if "|" in contract()[number]:
            note = "never import each other"
            drawing.text((LEFT + WIDTH + 14, top + ROW / 2 + 4.5), note, "soft", "start")
    return drawing.svg()


def contract() -> list[str]:
    """Return the layers from the top down, as the contract writes them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return found
