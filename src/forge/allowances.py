"""What job types say may be shown of their jobs although it looks secret."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from forge.core.errors import InvalidValue, UndecodablePayload, UnknownJobType

if TYPE_CHECKING:
    from forge.app import Forge


async def allowances(app: "Forge", job_types: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the `allow_sensitive` of types by name; the database is asked once a minute."""
    return {name: await allowance(app, name) for name in set(job_types)}


async def allowance(app: "Forge", job_type: str) -> tuple[str, ...]:
    """Return the `allow_sensitive` of a type; an unknown or impossible type allows nothing."""
    try:
        return (await app._job_type(job_type, None)).defaults.allow_sensitive
    except (UnknownJobType, InvalidValue, UndecodablePayload):
        return ()
