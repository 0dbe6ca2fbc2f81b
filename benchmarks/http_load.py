"""A load generator in a separate process: `python -m benchmarks.http_load PORT TOKEN N SECONDS`.

Each connection sends one request, waits for its response, and sends the next.
"""

import asyncio
import json
import sys
from functools import partial
from time import perf_counter, process_time
from typing import Any

import uvloop

BODY = b'{"args": {"user_id": 42, "template": "welcome"}}'


class Caller(asyncio.Protocol):
    """One connection; it does little work, because it shares the machine with the server."""

    def __init__(self, request: bytes, deadline: float, ended: "asyncio.Future[int]") -> None:
        self._request = request
        self._deadline = deadline
        self._ended = ended
        self._response = b""
        self._count = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_exception(error or ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        response = self._response = self._response + data
        if not is_complete(response):
            return
        if not response.startswith(b"HTTP/1.1 202"):
            self._ended.set_exception(RuntimeError(response.decode()))
            return
        self._response = b""
        self._count += 1
        if perf_counter() < self._deadline:
            self._transport.write(self._request)
        elif not self._ended.done():
            self._ended.set_result(self._count)
            self._transport.close()


def is_complete(response: bytes) -> bool:
    """Return whether the head and the whole body have arrived."""
    head, found, body = response.partition(b"\r\n\r\n")
    if not found:
        return False
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


async def main(port: int, token: str, connections: int, seconds: float) -> None:
    request = (
        b"POST /_api/jobs/no_op/dispatch HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
        b"Content-Length: %d\r\n\r\n%s"
    ) % (token.encode(), len(BODY), BODY)
    loop = asyncio.get_running_loop()
    started, processor_before = perf_counter(), process_time()
    ends = []
    for _ in range(connections):
        ended: asyncio.Future[int] = loop.create_future()
        ends.append(ended)
        caller = Caller(request, started + seconds, ended)
        await loop.create_connection(partial(_same, caller), "127.0.0.1", port)
    count = sum(await asyncio.gather(*ends))
    report = {
        "count": count,
        "seconds": perf_counter() - started,
        "processor_seconds": process_time() - processor_before,
    }
    print(json.dumps(report))


def _same(caller: Caller) -> Caller:
    return caller


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
