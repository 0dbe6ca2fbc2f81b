"""HTTP clients that record the duration and errors of every call."""

import asyncio
from time import perf_counter
from typing import Any

import httpx

from forge.telemetry.metrics.external_calls import CallMeter


class MeasuredClient(httpx.AsyncClient):
    """An async HTTP client whose calls are recorded."""

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
    """A sync HTTP client whose calls are recorded."""

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
