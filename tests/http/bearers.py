"""Static and signed tokens, and authenticators for them."""

import time
from typing import Any

import jwt
import pytest

from forge.cli.tokens import hash_of
from forge.config.server import AuthConfig
from forge.http.auth.authenticator import Authenticator
from forge.http.auth.rules import AuthRules
from forge.http.problems.problem import Problem

TOKEN = "forge_a-token-of-the-tests"
SECRET = "a secret of thirty-two characters or more"
# AuthRules that accept what `signed` makes.
ANYBODY = {"any_issuer": True, "any_audience": True, "operators": True}
ALGORITHM = {"algorithm": "HS256", "secret": SECRET, **ANYBODY}


def authenticator(**auth: Any) -> Authenticator:
    """Return an authenticator for these [auth] settings."""
    rules = AuthRules.of(AuthConfig.model_validate(auth))
    return Authenticator(lambda: rules)


def static(**entry: Any) -> dict[str, Any]:
    """Return the entry of TOKEN for [[auth.tokens]]."""
    return {"name": "ann", "sha256": hash_of(TOKEN), "roles": ["user"], **entry}


def signed(**claims: Any) -> str:
    """Return a token of ann, valid for a minute, with these extra claims."""
    return jwt.encode({"sub": "ann", "exp": time.time() + 60, **claims}, SECRET, "HS256")


def refusal(known: Authenticator, token: str | None) -> Problem:
    """Return the error for a token, which never repeats it."""
    with pytest.raises(Problem) as refused:
        known.identify(None if token is None else f"Bearer {token}")
    problem = refused.value
    assert problem.status == 401
    assert problem.headers["WWW-Authenticate"] == "Bearer"
    assert token is None or token not in problem.detail
    return problem
