"""The server: an ASGI app with Forge's HTTP and WebSocket API, alone or under any prefix."""

from forge.http.app import create_app

__all__ = ["create_app"]
