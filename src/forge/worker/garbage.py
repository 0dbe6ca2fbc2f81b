"""The garbage collector, told what a worker's memory is like."""

import gc


def spare_the_collector() -> None:
    """Leave what the app imported out of every collection, and collect less often.

    Each attempt makes and drops a few dozen objects without cycles; with the defaults a fifth of a
    busy worker's time went into looking through all of the app's objects for garbage among them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
