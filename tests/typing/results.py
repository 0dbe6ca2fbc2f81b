"""Results have the return type of the handler; by name and by id they are Any."""

from typing import Any, assert_type
from uuid import UUID

from forge import ActionContext, JobContext, JobHandle, MutationContext
from forge.sync.handle import SyncHandle
from tests.typing.jobs import (
    Mail,
    Receipt,
    Report,
    Size,
    app,
    count_rows,
    find_receipt,
    measure,
    read_clock,
    send_mail,
    tick,
)

MAIL = Mail(to="ann")


async def of_a_definition() -> None:
    assert_type(await send_mail.dispatch(MAIL), JobHandle[Receipt])
    assert_type(await (await send_mail.dispatch(MAIL)).result(), Receipt)
    assert_type(await (await find_receipt.dispatch(MAIL)).result(), Receipt | None)
    assert_type(await (await measure.dispatch({"a": "b"})).result("30s"), Size)
    assert_type(await (await count_rows.dispatch(MAIL)).result(30), Report)
    assert_type(await (await tick.dispatch()).result(), None)
    assert_type(await (await read_clock.dispatch()).result(), int)


async def of_app_dispatch(name: str) -> None:
    assert_type(await app.dispatch(send_mail, MAIL), JobHandle[Receipt])
    assert_type(await (await app.dispatch(measure, {"a": "b"})).result(), Size)
    assert_type(await (await app.dispatch(count_rows, MAIL)).result(), Report)
    assert_type(await (await app.dispatch(tick)).result(), None)
    assert_type(await (await app.dispatch(read_clock)).result(), int)
    assert_type(await app.dispatch(name, MAIL), JobHandle[Any])
    assert_type(await (await app.dispatch("send_mail", MAIL)).result(), Any)


def of_app_sync(name: str) -> None:
    assert_type(app.sync.dispatch(send_mail, MAIL), SyncHandle[Receipt])
    assert_type(app.sync.dispatch(send_mail, MAIL).result(), Receipt)
    assert_type(app.sync.dispatch(measure, {"a": "b"}).result(), Size)
    assert_type(app.sync.dispatch(count_rows, MAIL).result(), Report)
    assert_type(app.sync.dispatch(tick).result(), None)
    assert_type(app.sync.dispatch(read_clock).result(), int)
    assert_type(app.sync.dispatch(name, MAIL), SyncHandle[Any])
    assert_type(app.sync.dispatch(name, MAIL).result(), Any)


async def of_a_call(mutation: MutationContext, action: ActionContext) -> None:
    assert_type(await mutation.dispatch_job(send_mail, MAIL), JobHandle[Receipt])
    assert_type(await action.dispatch_job(send_mail, {"to": "ann"}), JobHandle[Receipt])
    assert_type(await mutation.dispatch_job("send_mail", MAIL), JobHandle[Any])
    assert_type(await action.dispatch_job("send_mail", MAIL), JobHandle[Any])


async def of_an_id(job_id: UUID) -> None:
    assert_type(app.handle(job_id), JobHandle[Any])
    assert_type(await app.handle(job_id).result(), Any)
    assert_type(app.sync.handle(job_id).result(), Any)
    assert_type(await (await app.cancel(job_id)).result(), Any)


async def of_a_call_in_place(ctx: JobContext) -> None:
    assert_type(await send_mail(ctx, MAIL), Receipt)
    assert_type(measure(ctx, {"name": "a.png"}), Size)
    await tick(ctx)


async def handles_are_covariant() -> None:
    handle: JobHandle[Receipt | None] = await send_mail.dispatch(MAIL)
    bare: JobHandle = await send_mail.dispatch(MAIL)
    anything: JobHandle[object] = handle
    print(bare, anything)


async def wrong(ctx: JobContext) -> None:
    number: int = await (await send_mail.dispatch(MAIL)).result()  # error: Receipt
    size: Receipt = await (await app.dispatch(measure, {})).result()  # error: Size
    report: Size = app.sync.dispatch(count_rows, MAIL).result()  # error: Report
    print((await (await find_receipt.dispatch(MAIL)).result()).id)  # error: None
    print(app.sync.dispatch(measure, {}).result().depth)  # error: depth
    handle: JobHandle[Size] = await send_mail.dispatch(MAIL)  # error: Receipt
    here: int = await send_mail(ctx, MAIL)  # error: Receipt
    text: str = measure(ctx, {})  # error: Size
    await measure(ctx, {})  # error: await
    print(number, size, report, handle, here, text)
