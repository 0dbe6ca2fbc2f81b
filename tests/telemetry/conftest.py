"""A server and workers in the event loop of the test."""

from tests.apps import app, make_app, work
from tests.http.conftest import api_url, http, make_server_app, serve, token

__all__ = ["api_url", "app", "http", "make_app", "make_server_app", "serve", "token", "work"]
