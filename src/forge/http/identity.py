"""Who calls: a name, what they may do, and whose rows they see."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a token allows; `manager` counts only together with `staff`."""

    USER = "user"
    STAFF = "staff"
    MANAGER = "manager"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whoever a token speaks for."""

    name: str
    roles: frozenset[Role]
    # None is an operator, who sees every tenant's rows.
    tenant_id: int | None = None
    # When the token ends, in seconds since the epoch; None is never.
    expires_at: float | None = None
    # By which key or configured token they came in, so that its withdrawal ends what they hold.
    key: str | None = field(default=None, compare=False, repr=False)

    def as_auth(self) -> dict[str, Any]:
        """Return what a job's handler is told about whoever dispatched it."""
        return {
            "name": self.name,
            "roles": sorted(self.roles),
            "tenant_id": self.tenant_id,
        }
