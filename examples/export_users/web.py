"""The site of the example: the pages, Forge's API, and tokens for the user who is logged in."""

import time
from pathlib import Path
from typing import Any

import jwt
from examples.export_users.app import app
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.staticfiles import StaticFiles

from forge import Config
from forge.http import create_app

ISSUER, AUDIENCE = "https://shop.example", "forge"
# Seconds. A page fetches another token when the server rejects the one it has.
TOKEN_LIFETIME = 300


def make_site(pages: Path, secret: str) -> FastAPI:
    """Return the site; its tokens are signed with this secret."""
    issued: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE}
    known = {"secret": secret, "jwt": {"algorithm": "HS256", "secret": secret, **issued}}
    app.config = app.config.model_copy(update={"auth": Config(auth=known).auth})
    site = FastAPI()
    site.mount("/forge", create_app(app))

    @site.get("/token", response_class=PlainTextResponse)
    async def token() -> str:
        """Return a token for Forge; a real site returns one only to users who are logged in."""
        user = {"sub": "ann", "roles": ["user"], "tenant_id": 1}
        valid = {"exp": time.time() + TOKEN_LIFETIME, "iss": ISSUER, "aud": AUDIENCE}
        return jwt.encode(user | valid, secret, "HS256")

    site.mount("/", StaticFiles(directory=pages, html=True))
    return site
