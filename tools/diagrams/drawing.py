"""Boxes, arrows and texts as SVG that can be read in a light and in a dark page."""

from collections.abc import Sequence
from html import escape

Point = tuple[float, float]

# The drawing has a background of its own: it stays readable where the page and the browser differ.
STYLE = """\
:root { --page: #ffffff; --ink: #1f2430; --soft: #5b6474; --line: #6b7688; --box: #eef1f6;
  --good: #dcefe2; --bad: #f8e1de; --busy: #dde9fb; --frame: #c3cad6; }
@media (prefers-color-scheme: dark) { :root { --page: #1b1e26; --ink: #e8ebf1; --soft: #a3acbc;
  --line: #8d97a8; --box: #2a2f3a; --good: #1f3d2b; --bad: #4a2724; --busy: #203553;
  --frame: #4b5464; } }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.soft { fill: var(--soft); font-size: 12px; }
.strong { font-weight: 600; }
.page { fill: var(--page); }
.box { fill: var(--box); stroke: var(--line); }
.good { fill: var(--good); stroke: var(--line); }
.bad { fill: var(--bad); stroke: var(--line); }
.busy { fill: var(--busy); stroke: var(--line); }
.frame { fill: none; stroke: var(--frame); stroke-dasharray: 5 4; }
.line { fill: none; stroke: var(--line); stroke-width: 1.4; }
.label { fill: var(--page); }
marker path { fill: var(--line); }
"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker>'
)
# The width of a character of labels, which is a little more than in most fonts.
CHARACTER = 6.6


class Drawing:
    """An SVG that is built from the top down: what is added later covers what is below."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n<title>{escape(title)}</title>\n'
            f"<style>\n{STYLE}</style>\n<defs>{HEAD}</defs>\n"
            f'<rect class="page" width="{width}" height="{height}" rx="8"/>'
        )
        self._parts: list[str] = []

    def box(self, corner: Point, size: Point, lines: Sequence[str], kind: str = "box") -> None:
        """Add a box with a name, and notes below the name."""
        (x, y), (width, height) = corner, size
        self._parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            'rx="6"/>'
        )
        first = y + height / 2 + 4.5 - 8 * (len(lines) - 1)
        for number, line in enumerate(lines):
            style = "soft" if number else "strong"
            self.text((x + width / 2, first + 16 * number), line, style)

    def frame(self, corner: Point, size: Point) -> None:
        """Add a dashed frame around boxes."""
        (x, y), (width, height) = corner, size
        self._parts.append(
            f'<rect class="frame" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            'rx="10"/>'
        )

    def arrow(self, points: Sequence[Point], label: str = "", at: Point | None = None) -> None:
        """Add an arrow through these points, with a label in its middle or at a point."""
        self._line(points, 'class="line" marker-end="url(#head)"')
        if label:
            (x1, y1), (x2, y2) = points[0], points[-1]
            self.label(at or ((x1 + x2) / 2, (y1 + y2) / 2), label)

    def line(self, points: Sequence[Point]) -> None:
        """Add a line without a head."""
        self._line(points, 'class="line"')

    def label(self, center: Point, text: str) -> None:
        """Add a text that covers the line below it."""
        width = CHARACTER * len(text) + 8
        self._parts.append(
            f'<rect class="label" x="{center[0] - width / 2:g}" y="{center[1] - 9:g}" '
            f'width="{width:g}" height="18"/>'
        )
        self.text((center[0], center[1] + 4.5), text)

    def text(self, at: Point, text: str, style: str = "", anchor: str = "middle") -> None:
        """Add a text at its baseline."""
        self._parts.append(
            f'<text class="{style}" x="{at[0]:g}" y="{at[1]:g}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def svg(self) -> str:
        return "\n".join([self._head, *self._parts, "</svg>", ""])

    def _line(self, points: Sequence[Point], attributes: str) -> None:
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path {attributes} d="M{path}"/>')
