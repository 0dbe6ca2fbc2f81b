"""The lifecycle: each transition of the table as an arrow, or as one arrow from a frame."""

from collections.abc import Mapping

from forge.core.lifecycle import FINAL, LIFECYCLE, Status, Verb
from tools.diagrams.drawing import Drawing, Point

SIZE = (130, 58)
PLACES: Mapping[Status, Point] = {
    Status.PENDING: (40, 110),
    Status.CLAIMED: (260, 110),
    Status.RUNNING: (480, 110),
    Status.RETRY: (260, 230),
    Status.COMPLETED: (740, 110),
    Status.FAILED: (480, 375),
    Status.DEAD_LETTER: (260, 375),
    Status.CANCELLED: (40, 375),
}
# The way of an arrow between two statuses, and the place of its label.
WAYS: Mapping[tuple[Status, Status], tuple[list[Point], Point]] = {
    (Status.PENDING, Status.CLAIMED): ([(170, 139), (259, 139)], (212, 139)),
    (Status.CLAIMED, Status.RUNNING): ([(390, 139), (479, 139)], (432, 139)),
    (Status.RUNNING, Status.COMPLETED): ([(610, 139), (739, 139)], (690, 139)),
    (Status.CLAIMED, Status.PENDING): ([(325, 110), (325, 82), (125, 82), (125, 109)], (225, 82)),
    (Status.RUNNING, Status.PENDING): ([(545, 110), (545, 48), (85, 48), (85, 109)], (315, 48)),
    (Status.CLAIMED, Status.RETRY): ([(298, 168), (298, 229)], (298, 198)),
    (Status.RETRY, Status.CLAIMED): ([(355, 230), (355, 169)], (355, 198)),
    (Status.RUNNING, Status.RETRY): ([(545, 168), (545, 259), (391, 259)], (468, 259)),
}
# The arrows from several statuses to a final one begin at a frame around them.
OUTER = frozenset({Status.PENDING, Status.CLAIMED, Status.RUNNING, Status.RETRY})
INNER = OUTER - {Status.PENDING}
FRAMES: Mapping[frozenset[Status], tuple[Point, Point]] = {
    OUTER: ((22, 22), (626, 310)),
    INNER: ((242, 96), (386, 214)),
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
        x, y = PLACES[end][0] + SIZE[0] / 2, PLACES[end][1]
        (_, top), (_, height) = FRAMES[starts]
        drawing.arrow([(x, top + height), (x, y - 1)], verb, (x, y - 20))
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
