from forge import Retry, Snooze
from forge.integrations.django import job_options
from orders.models import Order
from orders.task_names import TaskContext, task


@task
def count_orders() -> int:
    """Count all orders."""
    return Order.objects.count()


@task
async def add_order(customer: str, *, notes: list[str] = ()) -> dict:
    made = await Order.objects.acreate(customer=customer)
    return {"id": made.pk, "notes": notes}


@task(takes_context=True)
@job_options(retry=Retry(max_attempts=3, max_backoff="10ms"))
def fail_twice(context: TaskContext) -> int:
    if context.attempt < 3:
        raise LookupError(f"attempt {context.attempt}")
    return context.attempt


@task
def fail() -> None:
    raise LookupError("no such order")


@task
@job_options(idempotent="input.kwargs.order")
def once(*, order: int) -> int:
    return order


@task(takes_context=True)
def snooze_once(context: TaskContext) -> str:
    if Order.objects.get_or_create(customer="snoozed")[1]:
        raise Snooze("1ms")
    return context.task_result.id
