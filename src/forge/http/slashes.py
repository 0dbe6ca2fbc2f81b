"""Paths of the admin API: the same with and without the last slash."""

from starlette.types import ASGIApp, Receive, Scope, Send

ADMIN = "/api/jobs/admin/"


class LastSlash:
    """Adds the last slash to a path of the admin API that lacks it, so that each has one route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            below = path.removeprefix(scope.get("root_path") or "")
            if below.startswith(ADMIN) and not below.endswith("/"):
                # In the scope itself: what stands around this reads from it which route it was.
                scope["path"] = f"{path}/"
        await self._app(scope, receive, send)
