"""Forge's HTTP and WebSocket API as an ASGI app, served alone or mounted under a prefix."""

from forge.http.app import create_app

__all__ = ["create_app"]
