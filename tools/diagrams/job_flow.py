"""The way of one job through processes and tables."""

from forge.core.lifecycle import Verb
from tools.diagrams.drawing import Drawing
from tools.diagrams.steps import Row, apply, statement

# The edges of the boxes in the middle and at the right.
FROM, LEFT, RIGHT, TO = 180, 320, 550, 700


def job_flow() -> str:
    waiting = Row()
    running = apply(waiting, Verb.CLAIM, Verb.START)
    completed = apply(running, Verb.COMPLETE)
    drawing = Drawing(870, 410, "How a job is dispatched, run and followed")
    drawing.box((20, 50), (160, 110), ["your application", "in your transaction,", "or over HTTP"])
    drawing.box((20, 260), (160, 90), ["a page of yours", "shows the progress"])
    drawing.box((LEFT, 50), (RIGHT - LEFT, 300), [])
    drawing.text(((LEFT + RIGHT) / 2, 78), "PostgreSQL", "strong")
    rows = f"{waiting.status} → {running.status} → {completed.status}"
    drawing.box((LEFT + 12, 95), (206, 62), ["forge_jobs", rows], "good")
    drawing.box((LEFT + 12, 180), (206, 62), ["forge_attempts", "each attempt and its error"])
    drawing.box((LEFT + 12, 265), (206, 62), ["forge_dead_letters", "what failed for good"])
    lines = ["worker", "handlers in its slots:", "async, threads,", "child processes"]
    drawing.box((TO, 50), (150, 200), lines, "busy")
    drawing.box((TO, 275), (150, 75), ["server", "HTTP and WebSocket"], "busy")
    _between_boxes(drawing)
    return drawing.svg()


def _between_boxes(drawing: Drawing) -> None:
    _arrow(drawing, FROM, LEFT, 105, "1 dispatch", "jobs/dispatch")
    _arrow(drawing, RIGHT, TO, 75, "2 notification")
    _arrow(drawing, TO, RIGHT, 115, "3 claim", "jobs/claim")
    _arrow(drawing, TO, RIGHT, 155, "4 progress", "jobs/note")
    _arrow(drawing, TO, RIGHT, 195, "5 complete", "jobs/complete")
    _arrow(drawing, TO, RIGHT, 230, "or retry, bury", "jobs/settle")
    _arrow(drawing, TO, RIGHT, 312, "6 read changes", "jobs/changed_view")
    way = [(775.0, 350.0), (775.0, 382.0), (100.0, 382.0), (100.0, 351.0)]
    drawing.arrow(way, "7 send changes", (435, 382))
    drawing.arrow([(100, 260), (100, 161)], "starts a job")


def _arrow(drawing: Drawing, start: int, end: int, y: int, label: str, sql: str = "") -> None:
    """Draw an arrow between two boxes, and check that its statement exists."""
    if sql:
        statement(sql)
    drawing.arrow([(start, y), (end - 1 if end > start else end + 1, y)], label)
