"""The lifecycle: each transition of the table as an arrow, or as one arrow from a frame."""

from collections.abc import Mapping

from forge.core.lifecycle import FINAL, LIFECYCLE, Status, Verb
from tools.diagrams.drawing import Drawing, Point

SIZE = (150, 58)
PLACES: Mapping[Status, Point] = {
    Status.PENDING: (40, 110),
    Status.CLAIMED: (290, 110),
    Status.RUNNING: (540, 110),
    Status.RETRY: (290, 230),
    Status.COMPLETED: (820, 110),
    Status.FAILED: (540, 375),
    Status.DEAD_LETTER: (290, 375),
    Status.CANCELLED: (40, 375),
}
# The way of an arrow between two statuses that are not final, and the place of its label.
WAYS: Mapping[tuple[Status, Status], tuple[list[Point], Point]] = {
    (Status.PENDING, Status.CLAIMED): ([(190, 139), (289, 139)], (238, 139)),
    (Status.CLAIMED, Status.RUNNING): ([(440, 139), (539, 139)], (490, 139)),
    (Status.RUNNING, Status.COMPLETED): ([(690, 139), (819, 139)], (776, 139)),
    (Status.CLAIMED, Status.PENDING): ([(365, 110), (365, 82), (135, 82), (135, 109)], (250, 82)),
    (Status.RUNNING, Status.PENDING): ([(615, 110), (615, 48), (95, 48), (95, 109)], (365, 48)),
    (Status.CLAIMED, Status.RETRY): ([(335, 168), (335, 229)], (335, 198)),
    (Status.RETRY, Status.CLAIMED): ([(400, 230), (400, 169)], (400, 198)),
    (Status.RUNNING, Status.RETRY): ([(615, 168), (615, 259), (441, 259)], (528, 259)),
}
# The arrows from several statuses to a final one begin at a frame around them.
OUTER = frozenset({Status.PENDING, Status.CLAIMED, Status.RUNNING, Status.RETRY})
INNER = OUTER - {Status.PENDING}
FRAMES: Mapping[frozenset[Status], tuple[Point, Point]] = {
    OUTER: ((22, 22), (712, 310)),
    INNER: ((272, 96), (438, 214)),
}


def lifecycle() -> str:
    drawing = Drawing(
        1000, 460, "The statuses of a job, and the verbs that lead from one to another"
    )
    for corner, size in FRAMES.values():
        drawing.frame(corner, size)
    for (start, end), verbs in _moves().items():
        points, at = WAYS[start, end]
        drawing.arrow(points, ", ".join(verbs), at)
    for end, (verb, starts) in _ends().items():
        x, y = PLACES[end]
        (_, top), (_, height) = FRAMES[starts]
        drawing.arrow([(x + 75, top + height), (x + 75, y - 1)], verb, (x + 75, y - 20))
    for status, corner in PLACES.items():
        state = [status.state.replace("_", " ")] if str(status.state) != str(status) else []
        drawing.box(corner, SIZE, [status, *state], _kind(status))
    return drawing.svg()


def _moves() -> dict[tuple[Status, Status], list[Verb]]:
    """Return the transitions that have an arrow of their own, with their verbs."""
    grouped = {(start, end) for end, (_, starts) in _ends().items() for start in starts}
    moves: dict[tuple[Status, Status], list[Verb]] = {}
    for (start, verb), end in LIFECYCLE.items():
        if (start, end) not in grouped:
            moves.setdefault((start, end), []).append(verb)
    return moves


def _ends() -> dict[Status, tuple[Verb, frozenset[Status]]]:
    """Return the final statuses that several statuses lead to, with the verb and those."""
    found: dict[Status, tuple[Verb, frozenset[Status]]] = {}
    for verb in Verb:
        for end in FINAL:
            starts = {s for (s, known), to in LIFECYCLE.items() if known is verb and to is end}
            if len(starts) > 1:
                found[end] = (verb, frozenset(starts))
    return dict(sorted(found.items()))


def _kind(status: Status) -> str:
    if status is Status.COMPLETED:
        return "good"
    if status in FINAL:
        return "bad"
    return "busy" if status in (Status.CLAIMED, Status.RUNNING) else "box"
