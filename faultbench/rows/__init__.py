"""The scenarios, in modules by topic. Importing a module registers its rows."""

from importlib import import_module
from pathlib import Path


def register_all() -> None:
    """Register every row."""
    for module in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        import_module(f"{__name__}.{module.stem}")
