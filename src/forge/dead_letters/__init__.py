"""Dead letters: looking at what failed for good, and deciding what becomes of it."""

from forge.dead_letters.review import DeadLetters

__all__ = ["DeadLetters"]
