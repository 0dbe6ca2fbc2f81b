"""Options and attributes take the values that exist, and no others."""

from forge import Priority
from tests.typing.jobs import Mail, app, send_mail

MAIL = Mail(to="ann")


async def right() -> None:
    await send_mail.dispatch(MAIL, priority="critical")
    await app.dispatch(send_mail, MAIL, priority=75)
    await app.dispatch(send_mail, {"to": "ann"}, priority=Priority.HIGH)


async def wrong() -> None:
    await send_mail.dispatch(MAIL, priority="urgent")  # error: priority
    await app.dispatch(send_mail, priority=60)  # error: priority|dispatch
    app.sync.dispatch(send_mail, priority="hihg")  # error: priority|dispatch
    app.job(priority="urgent")  # error: overload|priority
    app.job(category="mails")  # error: overload|category
    app.schedule("x", every="1m", missed="never")  # error: missed
    await app.schedules.ensure("x", every="1m", missed="never")  # error: missed
    await app.dead_letters.reprocess_many(priority="urgent")  # error: priority
    app.classify(OSError, "temporary")  # error: classify
