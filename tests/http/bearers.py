"""Tokens that are known by their hash or signed, and who is to know them."""

import time
from typing import Any

import jwt
import pytest

from forge.cli.token import hash_of
from forge.config_server import AuthConfig
from forge.http.auth import Authenticator
from forge.http.problem import Problem
from forge.http.rules import Rules

TOKEN = "forge_a-token-of-the-tests"
SECRET = "a secret of thirty-two characters or more"
# Rules that accept what `signed` makes.
ANYBODY = {"any_issuer": True, "any_audience": True, "operators": True}
ALGORITHM = {"algorithm": "HS256", "secret": SECRET, **ANYBODY}


def authenticator(**auth: Any) -> Authenticator:
    """Return what knows callers by these settings of [auth]."""
    rules = Rules.of(AuthConfig.model_validate(auth))
    return Authenticator(lambda: rules)


def static(**entry: Any) -> dict[str, Any]:
    """Return the entry of [[auth.tokens]] that knows TOKEN."""
    return {"name": "ann", "sha256": hash_of(TOKEN), "roles": ["user"], **entry}


def signed(**claims: Any) -> str:
    """Return a token of ann, good for a minute, with these claims besides."""
    return jwt.encode({"sub": "ann", "exp": time.time() + 60, **claims}, SECRET, "HS256")


def refusal(known: Authenticator, token: str | None) -> Problem:
    """Return how a token is refused, which never repeats it."""
    with pytest.raises(Problem) as refused:
        known.identify(None if token is None else f"Bearer {token}")
    problem = refused.value
    assert problem.status == 401
    assert problem.headers["WWW-Authenticate"] == "Bearer"
    assert token is None or token not in problem.detail
    return problem
