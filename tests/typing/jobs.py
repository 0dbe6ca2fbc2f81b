"""An application's jobs, one for each way to write a handler; the cases use them."""

import dataclasses
from typing import TypedDict

from pydantic import BaseModel

from forge import Forge, JobContext, Priority

app = Forge()


class Mail(BaseModel):
    to: str


class Receipt(BaseModel):
    id: int


@dataclasses.dataclass
class Size:
    width: int
    height: int


class Report(TypedDict):
    rows: int


@app.job(priority="high", category="notifications")
async def send_mail(ctx: JobContext, mail: Mail) -> Receipt:
    return Receipt(id=1)


@app.job
async def find_receipt(ctx: JobContext, mail: Mail) -> Receipt | None:
    return None


@app.job(priority=Priority.LOW)
def measure(ctx: JobContext, input: dict[str, str]) -> Size:
    return Size(1, 2)


@app.job(isolation="process")
def count_rows(ctx: JobContext, input: Mail) -> Report:
    return {"rows": 3}


@app.job
async def tick(ctx: JobContext) -> None: ...


@app.job
def read_clock(ctx: JobContext) -> int:
    return 12
