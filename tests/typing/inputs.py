"""Dispatch takes the handler's input type or a dict, and rejects everything else."""

from collections.abc import Iterator

from forge import ActionContext, MutationContext
from tests.typing.jobs import Mail, Receipt, app, count_rows, measure, send_mail, tick


def mails() -> Iterator[Mail]:
    yield Mail(to="ann")


async def right(mutation: MutationContext, action: ActionContext, name: str) -> None:
    await send_mail.dispatch(Mail(to="ann"))
    await send_mail.dispatch({"to": "ann"})
    await count_rows.dispatch(Mail(to="ann"))
    await measure.dispatch({"name": "a.png"})
    await tick.dispatch()
    await app.dispatch(send_mail, Mail(to="ann"))
    await app.dispatch(send_mail, {"to": "ann"})
    await app.dispatch(tick)
    await app.dispatch(name, Mail(to="ann"))
    await app.dispatch_many(send_mail, mails())
    await app.dispatch_many(send_mail, [{"to": "ann"}, {"to": "bob"}])
    await app.dispatch_many(name, [1, 2])
    app.sync.dispatch(send_mail, Mail(to="ann"))
    app.sync.dispatch_many(send_mail, [Mail(to="ann")])
    await mutation.dispatch_job(send_mail, Mail(to="ann"))
    await action.dispatch_job(send_mail, {"to": "ann"})


async def wrong(mutation: MutationContext, action: ActionContext) -> None:
    await send_mail.dispatch(Receipt(id=1))  # error: dispatch
    await send_mail.dispatch("ann")  # error: dispatch
    await measure.dispatch(Mail(to="ann"))  # error: dispatch
    await count_rows.dispatch(5)  # error: dispatch
    await tick.dispatch(Mail(to="ann"))  # error: dispatch
    await app.dispatch(send_mail, Receipt(id=1))  # error: dispatch
    await app.dispatch(send_mail, "ann")  # error: dispatch
    await app.dispatch(tick, 5)  # error: dispatch
    app.sync.dispatch(send_mail, Receipt(id=1))  # error: dispatch
    app.sync.dispatch(tick, 5)  # error: dispatch
    await app.dispatch_many(send_mail, [Receipt(id=1)])  # error: List item|dispatch_many
    app.sync.dispatch_many(send_mail, [5])  # error: List item|dispatch_many
    await mutation.dispatch_job(send_mail, Receipt(id=1))  # error: dispatch_job
    await action.dispatch_job(send_mail, 5)  # error: dispatch_job
