"""Watch tokens that an application makes in its own process, with the secret of its server."""

import time
from uuid import UUID

from forge.core.errors import ConfigError
from forge.core.watch_token import APP, LIFETIME, WatchGrant, make_watch_token, mark_of


def own_watch_token(job_id: UUID, secret: str | None) -> str:
    """Return a token for one job, valid for an hour on every server with this secret."""
    if secret is None:
        raise ConfigError(
            "watch tokens are signed with [auth] secret, which is not set; set it in forge.toml or "
            "as FORGE_AUTH_SECRET, to the same value as for the server"
        )
    key = secret.encode()
    grant = WatchGrant(int(time.time() + LIFETIME), mark_of(APP, key))
    return make_watch_token(job_id, grant, key)
