"""Roles of Forge's API by the permissions of Django: `forge.user`, `forge.staff` and so on."""

from typing import Any

ROLES = ("viewer", "user", "staff", "manager")
# A superuser has every permission, and must not be restricted by one that only reads.
RESTRICTING = "viewer"


def roles_of(user: Any) -> frozenset[str]:
    """Return the roles that the permissions of a user give; none for who is not signed in."""
    if not (user.is_authenticated and user.is_active):
        return frozenset()
    if user.is_superuser:
        return frozenset(role for role in ROLES if role != RESTRICTING)
    return frozenset(role for role in ROLES if user.has_perm(f"forge.{role}"))
