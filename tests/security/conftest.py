"""Attacks run against the same server as the tests of the API."""

from tests.http.conftest import (
    api_url,
    app,
    bury,
    flaky,
    http,
    make_app,
    make_server_app,
    serve,
    token,
    work,
)
from tests.security.logins import attacker, granted

__all__ = [
    "api_url",
    "app",
    "attacker",
    "bury",
    "flaky",
    "granted",
    "http",
    "make_app",
    "make_server_app",
    "serve",
    "token",
    "work",
]
