"""Who asks: what a handler is told about whoever called or dispatched."""

from typing import Any


class Auth(dict[str, Any]):
    """Whoever asks, as JSON: the server writes name, roles and tenant_id; Python callers anything.

    >>> who = Auth(name="ada", roles=["user"], tenant_id=7, session="b2")
    >>> who.name, who.tenant_id, who["session"]
    ('ada', 7, 'b2')
    """

    @property
    def is_system(self) -> bool:
        """Whether no caller was named: the application itself, SQL or a schedule asked.

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
        """Whom the audit names: an actor where one is given, else the name."""
        return self.get("actor") or self.name

    @property
    def roles(self) -> tuple[str, ...]:
        """What they may do at the server; nothing where no server asked."""
        return tuple(self.get("roles") or ())

    @property
    def tenant_id(self) -> int | None:
        """The tenant they are bound to; None for an operator."""
        return self.get("tenant_id")
