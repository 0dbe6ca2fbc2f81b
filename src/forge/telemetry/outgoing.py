"""HTTP clients that measure: every call to another service, how long it took, what went wrong."""

import asyncio
from time import perf_counter
from typing import Any

import httpx

from forge.telemetry.call_meter import CallMeter


class MeasuredClient(httpx.AsyncClient):
    """An HTTP client whose calls are measured."""

    def __init__(self, meter: CallMeter, **options: Any) -> None:
        super().__init__(**options)
        self._meter = meter

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        began = perf_counter()
        try:
            response = await super().send(request, **options)
        except (Exception, asyncio.CancelledError) as error:
            self._meter.failed(request, began, error)
            raise
        self._meter.ended(request, began, response)
        return response


class MeasuredBlockingClient(httpx.Client):
    """The same for code in threads."""

    def __init__(self, meter: CallMeter, **options: Any) -> None:
        super().__init__(**options)
        self._meter = meter

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        began = perf_counter()
        try:
            response = super().send(request, **options)
        except Exception as error:
            self._meter.failed(request, began, error)
            raise
        self._meter.ended(request, began, response)
        return response
