"""A call runs: a mutation in one transaction, an action without, both within their time."""

import asyncio
import random
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from forge.calls.context import ActionContext, CallContext, MutationContext, Who
from forge.calls.definition import ActionDefinition, CallDefinition, MutationDefinition
from forge.core.duration import format_duration
from forge.core.errors import ForgeError, GrantMissing, TimedOut
from forge.store.fault import is_conflict, is_denied
from forge.store.transaction import busy, transaction

if TYPE_CHECKING:
    from forge.app import Forge

# How long the first retry of a conflict waits at most, in seconds; each one after it twice that.
FIRST_PAUSE = 0.02


class Answer(NamedTuple):
    """What a handler returned, and the same as JSON."""

    value: Any
    text: str


async def run(
    app: "Forge", definition: CallDefinition[Any, Any], given: dict[str, Any], who: Who
) -> Answer:
    """Run a call with arguments that were checked."""
    deadline = asyncio.get_running_loop().time() + definition.timeout.total_seconds()
    if isinstance(definition, MutationDefinition):
        return await _mutate(app, definition, given, who, deadline)
    assert isinstance(definition, ActionDefinition)
    session = await app.session()
    pool = await (await session.database()).users()
    context = ActionContext(app, who, pool, session.http())
    return await _answer(app, definition, context, given, deadline)


async def _mutate(
    app: "Forge",
    definition: MutationDefinition[Any, Any],
    given: dict[str, Any],
    who: Who,
    deadline: float,
) -> Answer:
    clock = asyncio.get_running_loop().time
    tried = 0
    while True:
        pause = random.random() * FIRST_PAUSE * 2**tried
        try:
            # A handler that is run again must find what the first one was given.
            mine = deepcopy(given) if definition.retries else given
            return await _mutate_once(app, definition, mine, who, deadline)
        except Exception as error:
            is_last = tried == definition.retries or clock() + pause >= deadline
            if is_last or not is_conflict(error):
                raise busy(error) from error.__cause__
        await asyncio.sleep(pause)
        tried += 1


async def _mutate_once(
    app: "Forge",
    definition: MutationDefinition[Any, Any],
    given: dict[str, Any],
    who: Who,
    deadline: float,
) -> Answer:
    session = await app.session()
    database = await session.database()
    async with transaction(database, definition.isolation, who.tenant_id, who.auth) as conn:
        context = MutationContext(app, who, conn)
        answer = await _answer(app, definition, context, given, deadline)
    if context.dispatched:
        session.wake(context.dispatched)
    return answer


async def _answer(
    app: "Forge",
    definition: CallDefinition[Any, Any],
    context: CallContext,
    given: dict[str, Any],
    deadline: float,
) -> Answer:
    """Run the handler, and make sure that what it returns can be told to its caller."""
    try:
        async with asyncio.timeout_at(deadline) as scope:
            value = await definition.handler(context, **given)
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise TimedOut(
            f"{definition.name} ran longer than its timeout of "
            f"{format_duration(definition.timeout)}; raise its timeout, or dispatch a job for what "
            "takes long"
        ) from error
    except Exception as error:
        if is_denied(error):
            raise _grant_missing(definition, error) from error
        raise
    except SystemExit as error:
        # It would end the server with all the calls of others.
        raise ForgeError(f"{definition.name} called sys.exit; raise an error instead") from error
    return Answer(value, definition.encode_output(value, limit=app.config.payload.max_output))


def _grant_missing(definition: CallDefinition[Any, Any], error: Exception) -> GrantMissing:
    return GrantMissing(
        f"the {definition.kind} {definition.name} lacks a grant: {error}; grant what it needs to "
        "the login of this process, such as `grant select, insert on TABLE to forge_api` (a server "
        "logs in with [server] database_url, or else [database] url)"
    )
