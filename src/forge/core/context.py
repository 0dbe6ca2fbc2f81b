"""The type that all contexts share, so that a handler's first parameter can be checked."""


class Context:
    """What a handler is called with: a JobContext, a MutationContext and the like."""

    __slots__ = ()
