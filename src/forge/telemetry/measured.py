"""What an app measures of itself."""

from forge.core.event import Events
from forge.store.link import Observer
from forge.telemetry.metrics import Metrics


class Measured:
    """The metrics of an app, its events, and who is told of the statements that it runs."""

    def __init__(self) -> None:
        self.events = Events()
        self.metrics = Metrics()
        self.observers: list[Observer] = []
