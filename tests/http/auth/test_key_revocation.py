"""Replacing a key or changing its rules revokes the identities it authenticated."""

import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from forge.config.server import AuthConfig
from forge.http.auth.authenticator import Authenticator
from forge.http.auth.rules import AuthRules
from forge.http.auth.watched_file import CHECK_INTERVAL
from forge.http.live.access import RECHECK_INTERVAL
from tests.faults.kit.process import wait_until
from tests.http.bearers import ALGORITHM, SECRET


def settings(**changed: Any) -> AuthRules:
    return AuthRules.of(AuthConfig.model_validate({"jwt": ALGORITHM | changed}))


@pytest.mark.parametrize(
    "changed",
    [
        {"secret": SECRET[::-1]},
        {"audience": "others", "any_audience": False},
        {"roles_claim": "groups"},
        {"operators": False},
    ],
)
def test_changed_secret_or_rule_invalidates_identities(
    changed: dict[str, Any],
) -> None:
    now = [settings()]
    known = Authenticator(lambda: now[0])
    bearer = known.identify_token(jwt.encode(claims(), SECRET, "HS256"))

    now[0] = settings()  # read again, and the same
    assert known.is_still_valid(bearer)
    now[0] = settings(**changed)
    assert not known.is_still_valid(bearer)


def test_replaced_key_invalidates_identities(tmp_path: Path) -> None:
    old, new = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    rules = {"algorithm": "RS256", "secret": None, "jwks": written(tmp_path, old)}
    auth = settings(**rules)
    known = Authenticator(lambda: auth)
    bearer = known.identify_token(jwt.encode(claims(), old, "RS256", headers={"kid": "one"}))
    assert known.is_still_valid(bearer)

    written(tmp_path, new)

    wait_until(lambda: not known.is_still_valid(bearer), 5, "its key is known to be gone")
    assert known.identify_token(jwt.encode(claims(), new, "RS256", headers={"kid": "one"}))


def test_revocation_takes_effect_within_five_seconds() -> None:
    assert CHECK_INTERVAL + RECHECK_INTERVAL < 5


def claims() -> dict[str, Any]:
    return {"sub": "ann", "roles": ["user"], "exp": time.time() + 60}


def written(folder: Path, key: rsa.RSAPrivateKey) -> Path:
    """Replace a file with one key atomically."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    (folder / "new").write_text(json.dumps({"keys": [public | {"kid": "one"}]}))
    os.replace(folder / "new", folder / "keys.json")
    return folder / "keys.json"
