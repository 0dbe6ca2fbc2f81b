"""Messages that arrive shortly before their jobs are due: SQS delays by whole seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from forge.store.connection.waiting import within
from forge.transports.sqs.queues import Message

# A message that is earlier than this, in seconds, is returned to its queue.
LONGEST_HOLD = 1.5
# Jobs due this close together are claimed in one statement.
TOGETHER = 0.05
# The database's clock is known to a few milliseconds: an early claim would find nothing.
MARGIN = 0.01


class EarlyMessage(NamedTuple):
    """A message, and the seconds until its job is due."""

    message: Message
    due_in: float


class EarlyMessages:
    """Holds early messages, each with a slot reserved for its job, and claims when they are due.

    At most half of the slots wait like this, so that jobs that are due can run meanwhile.
    """

    def __init__(
        self,
        slots: int,
        stopped: asyncio.Event,
        claim: Callable[[Sequence[Message]], Awaitable[None]],
        freed: Callable[[], None],
    ) -> None:
        self._most = max(slots // 2, 1)
        self._stopped = stopped
        self._claim = claim
        self._freed = freed
        self._waiting: dict[asyncio.Task[None], int] = {}

    @property
    def reserved(self) -> int:
        """How many slots are reserved."""
        return sum(self._waiting.values())

    def hold(self, early: Sequence[EarlyMessage]) -> list[Message]:
        """Claim the jobs of these messages when they are due; return those without a slot."""
        room = max(self._most - self.reserved, 0)
        by_time = sorted(early, key=lambda each: each.due_in)
        for group in _groups(by_time[:room]):
            task = asyncio.get_running_loop().create_task(self._claim_when_due(group))
            self._waiting[task] = len(group)
            task.add_done_callback(self._end)
        return [each.message for each in by_time[room:]]

    async def close(self) -> None:
        """Wait until every message is processed; once stopped, they are processed at once."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    async def _claim_when_due(self, group: Sequence[EarlyMessage]) -> None:
        await within(self._stopped, group[-1].due_in + MARGIN)
        await self._claim([each.message for each in group])

    def _end(self, task: "asyncio.Task[None]") -> None:
        del self._waiting[task]
        self._freed()


def _groups(by_time: Sequence[EarlyMessage]) -> Iterator[list[EarlyMessage]]:
    group: list[EarlyMessage] = []
    for each in by_time:
        if group and each.due_in - group[0].due_in > TOGETHER:
            yield group
            group = []
        group.append(each)
    if group:
        yield group
