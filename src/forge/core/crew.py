"""A crew: workers that take the same jobs, as far as capabilities and queues decide it."""

import hashlib
from collections.abc import Sequence

LONGEST = 255


def crew_name(capabilities: Sequence[str], queues: Sequence[str] | None) -> str:
    """Name a crew by what it can do and, where it serves only some, by its queues.

    >>> crew_name(["media", "gpu"], None), crew_name([], ["mail"])
    ('gpu,media', 'any@mail')
    """
    name = ",".join(sorted(set(capabilities))) or "any"
    if queues is not None:
        name += "@" + ",".join(sorted(set(queues)))
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
