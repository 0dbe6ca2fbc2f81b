"""Apps and workers as the engine's tests have them."""

from tests.flow.engine.conftest import app, make_app, work

__all__ = ["app", "make_app", "work"]
