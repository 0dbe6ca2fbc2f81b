"""Fixtures of the integrations."""

from tests.apps import app, make_app, work

__all__ = ["app", "make_app", "work"]
