from django.utils import timezone

from forge import JobContext
from forge.integrations.django import app
from orders.models import Order


@app.job
def confirm(ctx: JobContext, input: dict) -> str:
    order = Order.objects.get(pk=input["order"])
    order.confirmed_at = timezone.now()
    order.save()
    return f"confirmed for {order.customer}"


@app.job(idempotent="input.order")
async def remind(ctx: JobContext, input: dict) -> None:
    order = await Order.objects.aget(pk=input["order"])
    await confirm.dispatch({"order": order.pk})
