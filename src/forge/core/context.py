"""The caller: what a handler knows about who called or dispatched it."""

from typing import Any


class Auth(dict[str, Any]):
    """The caller as JSON: the server sets name, roles and tenant_id; Python callers any keys.

    >>> who = Auth(name="ada", roles=["user"], tenant_id=7, session="b2")
    >>> who.name, who.tenant_id, who["session"]
    ('ada', 7, 'b2')
    """

    @property
    def is_system(self) -> bool:
        """Whether no caller was named: the application itself, SQL or a schedule dispatched.

        >>> Auth().is_system, Auth(name="ada").is_system
        (True, False)
        """
        return not self

    @property
    def name(self) -> str | None:
        """The name of the token, or the subject of the JWT."""
        return self.get("name")

    @property
    def actor(self) -> str | None:
        """The name in the audit log: the actor if one is given, else the name."""
        return self.get("actor") or self.name

    @property
    def roles(self) -> tuple[str, ...]:
        """The caller's roles on the server; empty if the call did not come through a server."""
        return tuple(self.get("roles") or ())

    @property
    def tenant_id(self) -> int | None:
        """The tenant the caller is restricted to; None for an operator."""
        return self.get("tenant_id")


class Context:
    """Base class of what a handler is called with, such as JobContext and MutationContext."""

    __slots__ = ()
