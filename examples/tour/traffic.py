"""The customers of the bakery: they dispatch jobs until the tour ends."""

import asyncio
import random
from itertools import count
from uuid import uuid4

from examples.tour.app import app
from examples.tour.bakery import export_orders, fetch_prices, restock, take_order

CUSTOMERS = ("ann", "bela", "chloe", "dimitri", "emre", "fatou")
SUPPLIERS = ("mill", "dairy", "orchard")


async def keep_busy() -> None:
    """Dispatch orders, exports, deliveries and reminders, several per second."""
    for supplier in SUPPLIERS:
        await app.schedules.ensure(fetch_prices, supplier, {"supplier": supplier}, every="20s")
    for second in count():
        await asyncio.gather(*(order() for _ in range(random.randint(1, 4))))
        if second % 15 == 0:
            await export_orders.dispatch(
                {"format": random.choice(("csv", "pdf"))}, auth={"name": "office"}
            )
        if second % 20 == 0:
            sacks = 40 if second % 40 == 0 else 4
            await restock.dispatch({"sacks": sacks}, auth={"name": "stock"})
        if second % 30 == 0:
            await app.dispatch("send_reminder", {"text": "feed the sourdough"}, delay="10m")
        await asyncio.sleep(1)


async def order() -> None:
    """Order cakes on the website; a card and a receipt follow."""
    customer = random.choice(CUSTOMERS)
    details = {"number": random.randint(1, 9999), "customer": customer}
    await take_order.dispatch(
        {**details, "cakes": random.randint(1, 3)},
        auth={"name": "website", "actor": customer},
        correlation_id=uuid4(),
        tags=["web"],
    )
