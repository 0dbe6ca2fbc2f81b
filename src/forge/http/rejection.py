"""What a handler answers no with, as a problem."""

from forge.core.signals import Rejected
from forge.http.problem import KINDS, Kind, Problem
from forge.http.refusals import CODES


class Rejection(Problem):
    """A problem whose status, and code if it wishes, is the handler's own."""

    def __init__(self, error: Rejected) -> None:
        like = CODES.get(error.status, "bad_request")
        super().__init__(error.code or like, str(error), errors=error.faults)
        self._kind = KINDS[like]._replace(status=error.status)

    @property
    def kind(self) -> Kind:
        return self._kind
