"""The lists that one socket follows."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.core.errors import ForgeError
from forge.core.job_filter import JobFilter
from forge.http.auth.access import Caller
from forge.http.auth.authenticator import unauthenticated
from forge.http.jobs.paging import restrict
from forge.http.live.access import TokenAccess
from forge.http.live.messages import SubscribeListMessage, changed_message, error_message
from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Problem
from forge.jobs.hub import HubClosed
from forge.jobs.list_watcher import ListKey, ListWatcher

if TYPE_CHECKING:
    from forge.app import Forge

# Lists that one socket follows, and different lists that all sockets of a server follow.
MAX_LISTS = 20
MAX_DIFFERENT_LISTS = 200

# Sends a message about a list, instead of an unsent one about the same list.
Put = Callable[[str, str], None]


class FollowedLists:
    """Subscribes to lists by an id that the client chooses, and reports changes by it."""

    def __init__(self, app: "Forge", watcher: ListWatcher, put: Put, stop: Callable[[], None]):
        self._app = app
        self._watcher = watcher
        self._put = put
        self._stop = stop
        self._access: TokenAccess | None = None
        self._keys: dict[str, ListKey] = {}

    def subscribe(self, message: SubscribeListMessage, access: TokenAccess | None) -> None:
        """Follow a list under an id; another filter under the same id replaces the first."""
        if access is None:
            raise unauthenticated(
                "not authenticated; send an auth message first: watch tokens are for single jobs"
            )
        wanted = restrict(
            Caller(access.identity, self._app), JobFilter.of(message.filter.criteria())
        )
        key = ListKey(access.identity.tenant_id, wanted)
        self._require_room(message.id, key)
        self.unsubscribe(message.id)
        self._access = access
        self._keys[message.id] = key
        self._watcher.watch(key, self._on_change)

    def unsubscribe(self, list_id: str) -> None:
        key = self._keys.pop(list_id, None)
        if key is not None and key not in self._keys.values():
            self._watcher.unwatch(key, self._on_change)

    def renew(self, access: TokenAccess) -> None:
        """Go on with another token; lists that it does not cover end at their next change."""
        self._access = access

    def close(self) -> None:
        for list_id in list(self._keys):
            self.unsubscribe(list_id)

    def _require_room(self, list_id: str, key: ListKey) -> None:
        if list_id not in self._keys and len(self._keys) >= MAX_LISTS:
            raise Problem(
                "too_many",
                f"this socket already follows {MAX_LISTS} lists; unsubscribe from some, or open "
                "another socket",
            )
        if not self._watcher.is_watched(key) and self._watcher.lists >= MAX_DIFFERENT_LISTS:
            raise Problem(
                "too_many",
                f"this server already watches {MAX_DIFFERENT_LISTS} different lists; try later, or "
                "poll the list",
            )

    def _on_change(self, key: ListKey, error: ForgeError | None) -> None:
        for list_id in [known for known, of in self._keys.items() if of == key]:
            if isinstance(error, HubClosed):
                self._stop()
            elif error is not None:
                self._end(list_id, as_problem(error))
            elif self._access is None or self._access.identity.tenant_id != key.tenant_id:
                reason = "the socket now has a token of another tenant; subscribe again"
                self._end(list_id, Problem("forbidden", reason))
            else:
                self._put(list_id, changed_message(list_id))

    def _end(self, list_id: str, problem: Problem) -> None:
        self.unsubscribe(list_id)
        self._put(list_id, error_message(problem, list_id=list_id))
