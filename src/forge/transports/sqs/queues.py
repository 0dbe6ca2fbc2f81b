"""Calls of SQS, by boto3 in threads."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from forge.config.transport import SqsConfig
from forge.core.errors import ConfigError, ForgeError
from forge.store.outbox import OutboxEntry

T = TypeVar("T")
# SQS takes no more at once, and delays no longer.
BATCH = 10
LONGEST_DELAY = 900
THREADS = 8
# Polls wait, and must not keep everything else waiting; a thread is made when it is first needed.
POLLING_THREADS = 64
# Seconds until a connection, or an answer that is due, times out.
NETWORK_TIMEOUT = 5


class QueueUnavailable(ForgeError):
    """SQS does not answer, or refuses; messages wait, and jobs are safe in PostgreSQL."""


class Message(NamedTuple):
    """A message as this worker received it; `job_id` is None where the body names no job."""

    url: str
    id: str
    receipt: str
    job_id: UUID | None
    # When the job was due at the time of sending, by the database's clock; None: at once.
    due_at: float | None = None


class Queues:
    """The queues of one region, asked from threads, since boto3 blocks."""

    def __init__(self, settings: SqsConfig) -> None:
        self._visibility = int(settings.visibility_timeout.total_seconds())
        self._client = _client(settings)
        self._threads = ThreadPoolExecutor(THREADS, "forge-sqs")
        self._polling = ThreadPoolExecutor(POLLING_THREADS, "forge-sqs-poll")

    async def receive(self, url: str, most: int, wait: float) -> list[Message]:
        """Wait for messages; each is this worker's until its visibility times out."""
        answer = await self._ask(
            self._client.receive_message,
            self._polling,
            QueueUrl=url,
            MaxNumberOfMessages=min(most, BATCH),
            WaitTimeSeconds=int(wait),
            VisibilityTimeout=self._visibility,
        )
        found = answer.get("Messages", [])
        return [Message(url, m["MessageId"], m["ReceiptHandle"], *_read(m["Body"])) for m in found]

    async def send(self, url: str, wanted: Sequence[OutboxEntry]) -> set[UUID]:
        """Send one message per entry; return the jobs whose messages SQS did not accept.

        SQS delays by whole seconds, rounded down here: the receiver waits for the rest.
        """
        entries = [
            {
                "Id": str(place),
                "MessageBody": body_of(entry.job_id, entry.due_at if entry.due_in > 0 else None),
                "DelaySeconds": int(min(entry.due_in, LONGEST_DELAY)),
            }
            for place, entry in enumerate(wanted)
        ]
        failed = await self._in_batch(self._client.send_message_batch, url, entries)
        return {wanted[place].job_id for place in failed}

    async def depth(self, url: str) -> int:
        """Return about how many visible messages a queue has."""
        name = "ApproximateNumberOfMessages"
        call = self._client.get_queue_attributes
        answer = await self._ask(call, QueueUrl=url, AttributeNames=[name])
        return int(answer.get("Attributes", {}).get(name, 0))

    async def delete(self, messages: Sequence[Message]) -> list[Message]:
        """Delete messages; return those that are still there."""
        return await self._for_each(messages, self._client.delete_message_batch, {})

    async def hide(self, messages: Sequence[Message], seconds: float) -> list[Message]:
        """Show messages again after these seconds, rounded down; return those that failed."""
        change = {"VisibilityTimeout": int(seconds)}
        call = self._client.change_message_visibility_batch
        return await self._for_each(messages, call, change)

    async def close(self) -> None:
        for threads in (self._threads, self._polling):
            threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def _for_each(
        self, messages: Sequence[Message], call: Callable[..., Any], options: dict[str, Any]
    ) -> list[Message]:
        batches = list(_batches(messages))
        failed = await asyncio.gather(
            *(
                self._in_batch(
                    call,
                    batch[0].url,
                    [
                        {"Id": str(place), "ReceiptHandle": message.receipt, **options}
                        for place, message in enumerate(batch)
                    ],
                )
                for batch in batches
            ),
            return_exceptions=True,
        )
        left: list[Message] = []
        for batch, places in zip(batches, failed, strict=True):
            if isinstance(places, QueueUnavailable):
                left += batch
            elif isinstance(places, BaseException):
                raise places
            else:
                left += [batch[place] for place in places]
        return left

    async def _in_batch(
        self, call: Callable[..., Any], url: str, entries: list[dict[str, Any]]
    ) -> list[int]:
        answer = await self._ask(call, QueueUrl=url, Entries=entries)
        return [int(entry["Id"]) for entry in answer.get("Failed", [])]

    async def _ask(
        self, call: Callable[..., Any], threads: ThreadPoolExecutor | None = None, **options: Any
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            answer: dict[str, Any] = await loop.run_in_executor(
                threads or self._threads, lambda: call(**options)
            )
        except Exception as error:  # whatever boto3 and what lies below it may raise
            raise QueueUnavailable(
                f"SQS call failed: {error}; check [transport.sqs], the credentials and the network"
            ) from error
        return answer


def body_of(job_id: UUID, due_at: float | None = None) -> str:
    """Return the body of a message."""
    named: dict[str, Any] = {"job_id": str(job_id)}
    return json.dumps(named if due_at is None else named | {"due_at": due_at})


def _read(body: str) -> tuple[UUID | None, float | None]:
    try:
        said = json.loads(body)
        job_id = UUID(said["job_id"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, None
    due_at = said.get("due_at")
    return job_id, due_at if isinstance(due_at, float) and isfinite(due_at) else None


def tens(found: Iterable[T]) -> Iterator[list[T]]:
    """Split things into batches of the size that SQS accepts."""
    rest = iter(found)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _batches(messages: Iterable[Message]) -> Iterator[list[Message]]:
    by_url: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        by_url[message.url].append(message)
    for found in by_url.values():
        yield from tens(found)


def _client(settings: SqsConfig) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigError(
            'the transport "sqs" needs boto3; install it with `pip install "forge-jobs[aws]"`'
        ) from error
    options = Config(
        connect_timeout=NETWORK_TIMEOUT,
        read_timeout=settings.wait.total_seconds() + NETWORK_TIMEOUT,
        max_pool_connections=THREADS + POLLING_THREADS,
        # The callers retry, and log it.
        retries={"total_max_attempts": 1},
    )
    try:
        # A session of its own: the default one is not thread-safe.
        return boto3.session.Session(region_name=settings.region).client(
            "sqs", endpoint_url=settings.endpoint_url, config=options
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"[transport.sqs] cannot be used: {error}; correct it") from error
