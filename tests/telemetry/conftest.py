"""A server and workers in the test's own loop."""

from tests.flow.engine.conftest import app, make_app, work
from tests.http.conftest import api_url, http, make_server_app, serve, token

__all__ = ["api_url", "app", "http", "make_app", "make_server_app", "serve", "token", "work"]
