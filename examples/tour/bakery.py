"""A bakery that never closes: the jobs and schedules that the dashboard shows during the tour."""

import asyncio
import random
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

import forge
from forge import JobContext, NonRetryable, Retry, ScheduleContext


class Order(BaseModel):
    """What a customer wants."""

    number: int
    customer: str
    cakes: int = 1


class Export(BaseModel):
    """Which orders to export."""

    format: str = "csv"
    rows: int = 400


@forge.job(queue="shop", priority="high")
async def take_order(ctx: JobContext, order: Order) -> dict[str, Any]:
    """Accept an order; a card and a receipt follow."""
    await asyncio.sleep(random.uniform(0.02, 0.2))
    ctx.log.info("accepted", order=order.number, cakes=order.cakes)
    options: Any = {"correlation_id": ctx.correlation_id, "tenant_id": ctx.tenant_id}
    details = order.model_dump()
    await charge_card.dispatch(details, **options)
    await send_receipt.dispatch(details, delay="5s", **options)
    return {"order": order.number, "price": 24 * order.cakes}


@forge.job(queue="shop", retry=Retry(max_attempts=5, max_backoff="20s"))
async def charge_card(ctx: JobContext, order: Order) -> str:
    """Charge a card. The bank is busy now and then, and answers a later attempt."""
    await asyncio.sleep(random.uniform(0.1, 0.8))
    if order.number % 6 == 0 and ctx.attempt < 3:
        ctx.log.warning("the bank is busy", order=order.number)
        raise ConnectionError("the bank answered 503")
    return f"charged {24 * order.cakes} EUR"


@forge.job(queue="mail")
async def send_receipt(ctx: JobContext, order: Order) -> None:
    """Send a receipt. Some addresses do not exist, and no other attempt can change that."""
    await asyncio.sleep(random.uniform(0.05, 0.3))
    if order.number % 17 == 0:
        raise NonRetryable(f"mailbox of {order.customer} does not exist")


@forge.job(queue="stock", retry=Retry(max_attempts=2, max_backoff="2s"))
async def restock(ctx: JobContext, order: dict[str, Any]) -> None:
    """Order flour. The mill rejects large orders, so those become dead letters to review."""
    await asyncio.sleep(0.5)
    if order["sacks"] > 10:
        raise ValueError(f"the mill delivers 10 sacks at most, not {order['sacks']}")


@forge.job(queue="reports", timeout="5m")
async def export_orders(ctx: JobContext, export: Export) -> dict[str, Any]:
    """Export orders for half a minute, with progress and a log."""
    for row in range(0, export.rows, 10):
        ctx.progress(100 * row / export.rows, f"row {row} of {export.rows}")
        if row % 100 == 0:
            ctx.log.info("wrote a part", rows=row, file=f"orders.{export.format}")
        await asyncio.sleep(0.7)
    return {"file": f"orders.{export.format}", "rows": export.rows}


@forge.cron("* * * * *")
async def count_stock(ctx: ScheduleContext) -> None:
    """Count the flour every minute."""
    await asyncio.sleep(1)


@forge.cron("30 5 * * 1-6", tz="Europe/Paris")
async def start_ovens(ctx: ScheduleContext) -> None:
    """Begin before the shop opens."""


@forge.schedule("fetch_prices", every="20s")
async def fetch_prices(ctx: ScheduleContext, payload: dict[str, str]) -> timedelta | None:
    """Fetch the prices of a supplier; one of them answers only sometimes."""
    await asyncio.sleep(random.uniform(0.2, 2))
    if payload["supplier"] == "mill" and random.random() < 0.4:
        raise TimeoutError("the mill did not answer within 2 s")
    return None


def register(app: forge.Forge) -> None:
    """Add the bakery's jobs and schedules to an app."""
    for job in (take_order, charge_card, send_receipt, restock, export_orders):
        app.register(job)
    for schedule in (count_stock, start_ovens, fetch_prices):
        app.register(schedule)
