"""Claim and ack in time: a worker that was paused comes back after its job went to another."""

from datetime import timedelta

from forge import Config
from forge.core.lifecycle import Verb
from tools.diagrams.drawing import Drawing
from tools.diagrams.steps import Row, apply, statement

A, ROW, B = 130, 450, 770
TOP, STEP = 74, 48


def claim_and_ack() -> str:
    worker = Config().worker
    drawing = Drawing(900, 545, "Two workers and the row of one job, over time")
    for x, name in ((A, "worker A"), (ROW, "the row in forge_jobs"), (B, "worker B")):
        drawing.line([(x, 50), (x, 540)])
        drawing.box((x - 90, 20), (180, 32), [name], "busy" if x != ROW else "box")
    row = Row()
    _state(drawing, 0, row)
    row = apply(row, Verb.CLAIM, Verb.START)
    _write(drawing, 1, A, statement("jobs/claim"), str(row))
    every = f"a heartbeat every {_seconds(worker.heartbeat_interval)}"
    _write(drawing, 2, A, every)
    drawing.box(
        (A - 60, TOP + 2.6 * STEP), (120, 3.9 * STEP), ["paused:", "no heartbeat", "no CPU"]
    )
    silence = f"no heartbeat from A for {_seconds(worker.dead_after)}"
    drawing.text((B - 14, TOP + 3.4 * STEP), silence, "soft", "end")
    row = apply(row, Verb.RESCUE)
    _write(drawing, 4, B, statement("jobs/rescue"), str(row))
    row = apply(row, Verb.CLAIM, Verb.START)
    _write(drawing, 5, B, statement("jobs/claim"), str(row))
    _refused(drawing, 7, "complete, lease 1", row)
    row = apply(row, Verb.COMPLETE)
    _write(drawing, 9, B, f"{statement('jobs/complete')}, lease {row.lease}", str(row))
    return drawing.svg()


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"


def _state(drawing: Drawing, step: float, row: Row | str) -> None:
    drawing.box((ROW - 90, TOP + step * STEP - 4), (180, 28), [str(row)])


def _write(drawing: Drawing, step: int, worker: int, text: str, state: str = "") -> None:
    """Draw a statement of a worker, and the row that it leaves."""
    y = TOP + step * STEP
    edge = ROW + (-91 if worker < ROW else 91) * bool(state)
    drawing.arrow([(worker, y + 10), (edge, y + 10)], text, ((worker + edge) / 2, y))
    if state:
        _state(drawing, step, state)


def _refused(drawing: Drawing, step: int, text: str, row: Row) -> None:
    y = TOP + step * STEP
    drawing.arrow([(A, y + 10), (ROW - 91, y + 10)], text, ((A + ROW - 91) / 2, y))
    _state(drawing, step, row)
    drawing.arrow(
        [(ROW - 91, y + 40), (A, y + 40)], "0 rows: rejected", ((A + ROW - 91) / 2, y + 40)
    )
