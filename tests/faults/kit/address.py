"""Where a PostgreSQL server listens, read from its URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit


@dataclass(frozen=True)
class Address:
    """A server's URL and the socket or host and port to connect to."""

    url: str
    host: str
    port: int
    socket_path: str | None

    @classmethod
    def of(cls, url: str) -> Address:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        host = options.get("host") or unquote(parts.hostname or "127.0.0.1")
        port = int(options.get("port") or parts.port or 5432)
        socket_path = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else None
        return cls(url, host, port, socket_path)

    def moved_to(
        self, host: str, port: int, *, database: str | None = None, user: str | None = None
    ) -> str:
        """The same login at another host, without TLS so that the proxy can read it."""
        parts = urlsplit(self.url)
        options = dict(parse_qsl(parts.query))
        for key in ("host", "port"):
            options.pop(key, None)
        options["sslmode"] = "disable"
        login = _login(parts, options.pop("user", None), user)
        path = f"/{quote(database)}" if database is not None else parts.path
        return f"{parts.scheme}://{login}{host}:{port}{path}?{urlencode(options)}"


def _login(parts: SplitResult, optional_user: str | None, wanted_user: str | None) -> str:
    user = quote(wanted_user or unquote(parts.username or "") or optional_user or "", safe="")
    if not user:
        return ""
    return f"{user}:{parts.password}@" if parts.password else f"{user}@"
