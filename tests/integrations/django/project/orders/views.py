from typing import Any

from django.http import HttpResponse

from forge.integrations.django import app
from orders.jobs import confirm


def order(request: Any) -> HttpResponse:
    return HttpResponse(app.sync.dispatch(confirm, {"order": 1}).id)


async def order_async(request: Any) -> HttpResponse:
    return HttpResponse((await confirm.dispatch({"order": 1})).id)
