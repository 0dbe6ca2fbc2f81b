"""Runs a mutation in one transaction and an action without, both within their timeout."""

import asyncio
import random
from copy import deepcopy
from typing import Any, NamedTuple

from forge.calls.context import ActionContext, CallContext, CallIdentity, MutationContext
from forge.config.settings import PayloadConfig
from forge.core.duration import format_duration
from forge.core.errors import ForgeError, GrantMissing, TimedOut
from forge.definitions.call import ActionDefinition, CallDefinition, MutationDefinition
from forge.definitions.registry import Registry
from forge.jobs.dispatch import Dispatcher
from forge.jobs.session import Sessions
from forge.store.connection.driver_errors import is_conflict, is_denied
from forge.store.connection.transaction import busy, transaction

# How long the first retry of a conflict waits at most, in seconds; each one after it twice that.
FIRST_PAUSE = 0.02


class Answer(NamedTuple):
    """What a handler returned, and the same as JSON."""

    value: Any
    text: str


class CallRunner:
    """Runs mutations and actions for `app.call` and for HTTP."""

    def __init__(
        self, registry: Registry, sessions: Sessions, dispatcher: Dispatcher, limits: PayloadConfig
    ) -> None:
        self._registry = registry
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._limits = limits

    async def call(
        self, call: CallDefinition[Any, Any] | str, input: Any, who: CallIdentity
    ) -> Any:
        """Check an input of Python, run the call, and return the handler's own value."""
        definition = self._registry.find_call(call)
        given = definition.arguments.of_python(input, limit=self._limits.max_input)
        return (await self.run(definition, given, who)).value

    async def run(
        self, definition: CallDefinition[Any, Any], given: dict[str, Any], who: CallIdentity
    ) -> Answer:
        """Run a call with arguments that were checked."""
        deadline = _clock() + definition.timeout.total_seconds()
        if isinstance(definition, MutationDefinition):
            return await self._mutate(definition, given, who, deadline)
        assert isinstance(definition, ActionDefinition)
        session = self._sessions.here()
        database = await session.database()
        context = ActionContext(
            self._dispatcher, who, await database.users(), session.http(), database.callers
        )
        return await self._answer(definition, context, given, deadline)

    async def _mutate(
        self,
        definition: MutationDefinition[Any, Any],
        given: dict[str, Any],
        who: CallIdentity,
        deadline: float,
    ) -> Answer:
        tried = 0
        while True:
            pause = random.random() * FIRST_PAUSE * 2**tried
            try:
                # A retry must receive the arguments as they were before the first try.
                mine = deepcopy(given) if definition.retries else given
                return await self._mutate_once(definition, mine, who, deadline)
            except Exception as error:
                is_last = tried == definition.retries or _clock() + pause >= deadline
                if is_last or not is_conflict(error):
                    raise busy(error) from error.__cause__
            await asyncio.sleep(pause)
            tried += 1

    async def _mutate_once(
        self,
        definition: MutationDefinition[Any, Any],
        given: dict[str, Any],
        who: CallIdentity,
        deadline: float,
    ) -> Answer:
        session = self._sessions.here()
        database = await session.database()
        async with transaction(database, definition.isolation, who.tenant_id, who.auth) as conn:
            context = MutationContext(self._dispatcher, who, conn)
            answer = await self._answer(definition, context, given, deadline)
        if context.dispatched:
            session.wake(context.dispatched)
        return answer

    async def _answer(
        self,
        definition: CallDefinition[Any, Any],
        context: CallContext,
        given: dict[str, Any],
        deadline: float,
    ) -> Answer:
        """Run the handler, and encode its output as its type says."""
        try:
            async with asyncio.timeout_at(deadline) as scope:
                value = await definition.handler(context, **given)
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise TimedOut(
                f"{definition.name} ran longer than its timeout of "
                f"{format_duration(definition.timeout)}; raise its timeout, or dispatch a job for "
                "what takes long"
            ) from error
        except Exception as error:
            if is_denied(error):
                raise _grant_missing(definition, error) from error
            raise
        except SystemExit as error:
            # It would end the server with all its other calls.
            raise ForgeError(
                f"{definition.name} called sys.exit; raise an error instead"
            ) from error
        text = definition.encode_output(value, limit=self._limits.max_output)
        return Answer(value, text)


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _grant_missing(definition: CallDefinition[Any, Any], error: Exception) -> GrantMissing:
    return GrantMissing(
        f"the {definition.kind} {definition.name} lacks a grant: {error}; grant what it needs to "
        "the login of this process, such as `grant select, insert on TABLE to forge_api` (a server "
        "logs in with [server] database_url, or else [database] url)"
    )
