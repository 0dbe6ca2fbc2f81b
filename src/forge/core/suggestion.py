"""Suggestions for unknown names in error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the most similar known name; "" if none is similar.

    >>> did_you_mean("export_user", ["export_users", "import_users"])
    ": did you mean 'export_users'?"
    """
    near = get_close_matches(name, known, n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def suggestion(name: str, known: Iterable[str], place: str, prefix: str = "") -> str:
    """Suggest the most similar known name, or list all; a common prefix is not compared.

    >>> suggestion("stauts", ["status", "state"], "it")
    'did you mean status?'
    >>> suggestion("colour", ["status", "state"], "it")
    'it takes status, state'
    """
    endings = {each.removeprefix(prefix): each for each in known}
    near = get_close_matches(name.removeprefix(prefix), endings, n=1)
    if near:
        return f"did you mean {endings[near[0]]}?"
    return f"{place} takes {', '.join(endings.values())}"
