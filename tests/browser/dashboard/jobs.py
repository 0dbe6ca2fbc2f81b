"""Job types of the dashboard's tests: they end as their names say, when a test lets them."""

from typing import Literal

from pydantic import BaseModel, Field

from forge import Forge, JobContext, NonRetryable, Retry, ScheduleContext
from tests.browser.jobs import stage

__all__ = ["HOSTILE", "mail_server", "register", "stage"]

# Shown as text, whatever field it is in.
HOSTILE = "</script><img src=x onerror=alert(1)>{@html 1}\u202e%s${7*7}'\"`"


class Export(BaseModel):
    """Which users to export."""

    format: str = "csv"
    rows: int = 10


class Mail(BaseModel):
    """A message to send."""

    to: str
    copies: int = 0
    api_key: str | None = None


class MailServer:
    """Refuses messages while it is down."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.is_down = True
        self.sent: list[Mail] = []

    def send(self, mail: Mail) -> None:
        if self.is_down:
            raise NonRetryable(f"no route to the server for {mail.to}")
        self.sent.append(mail)


mail_server = MailServer()


class Resize(BaseModel):
    """An image, and what becomes of it."""

    image_id: int
    format: Literal["png", "webp"]
    is_public: bool | None = None
    caption: str = Field("", description="Shown below the image.")
    sizes: list[int] = []


def register(app: Forge) -> None:
    """Register the types with an app."""

    @app.job(queue="reports")
    async def export_users(ctx: JobContext, input: Export) -> dict[str, int]:
        """Export users to a file."""
        for percent in range(0, 100, 10):
            await stage.reach(percent)
            ctx.progress(percent, f"row {percent} of 100")
        await stage.reach(100)
        return {"rows": input.rows}

    @app.job
    async def greet(ctx: JobContext, input: dict[str, object]) -> dict[str, object]:
        """Return the input."""
        return input

    @app.job(queue="images")
    async def resize(ctx: JobContext, input: Resize) -> Resize:
        """Resize an image."""
        return input

    @app.job
    async def break_down(ctx: JobContext, input: dict[str, str]) -> None:
        """Fail for good."""
        raise NonRetryable(input.get("reason", "out of paper"))

    @app.job
    async def send_mail(ctx: JobContext, input: Mail) -> None:
        """Send a message, unless the mail server is down."""
        mail_server.send(input)

    @app.job(retry=Retry(max_attempts=3, backoff="fixed", max_backoff="1s"))
    async def import_orders(ctx: JobContext, input: dict[str, str]) -> None:
        """Write to the log, dispatch a job, and fail at the first attempt."""
        ctx.log.info("read the file", rows=500, name=input.get("name", "orders.csv"))
        ctx.log.warning("skipped a row", row=7)
        if ctx.attempt == 1:
            raise ConnectionError("storage is unavailable")
        await app.dispatch("greet", {"orders": "500"}, correlation_id=ctx.correlation_id)

    @app.schedule("clean_up")
    async def clean_up(ctx: ScheduleContext, payload: dict[str, str]) -> None:
        """Delete old files; fail where the payload names a reason."""
        if "reason" in payload:
            raise ConnectionError(payload["reason"])
        ctx.progress(100, "12 files deleted")
