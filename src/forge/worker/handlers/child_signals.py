"""The signals that stop a worker: its children ignore them, what a handler starts obeys them."""

import os
import signal
import threading

STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})


def leave_signals_to_the_worker() -> None:
    """Ignore the signals here, and let processes that are started from here obey them."""
    for number in STOPPING:
        # Not SIG_IGN, which every program that is started here would inherit.
        signal.signal(number, lambda number, frame: None)
    fork = _Fork()
    os.register_at_fork(
        before=fork.hold_signals,
        after_in_parent=fork.release_signals,
        after_in_child=fork.obey_signals,
    )


class _Fork:
    """Holds back the signals of a forked process until it obeys them, so that none is lost."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def hold_signals(self) -> None:
        self._of_thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)

    def release_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._of_thread.mask)

    def obey_signals(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.release_signals()
