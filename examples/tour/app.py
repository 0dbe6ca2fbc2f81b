"""The jobs of the tour: four functions and how each wants to be run."""

import asyncio
from datetime import UTC, datetime

from pydantic import BaseModel

from forge import Forge, JobContext, Retry

app = Forge()


class Cake(BaseModel):
    """An input is checked when it is dispatched, and again when it is read."""

    flavour: str
    layers: int


@app.job(timeout="1m")
async def bake_cake(ctx: JobContext, cake: Cake) -> str:
    """Take a while, and say how far it is."""
    steps = ["weigh the flour", *(f"bake layer {n + 1}" for n in range(cake.layers)), "add icing"]
    for done, step in enumerate(steps):
        ctx.progress(100 * done / len(steps), step)
        await asyncio.sleep(0.5)
    return f"a {cake.flavour} cake of {cake.layers} layers"


@app.job(retry=Retry(max_attempts=5, backoff="exponential", max_backoff="10s"))
async def call_flaky_service(ctx: JobContext) -> str:
    """Fail twice: after the first attempt it waits about 1 s, after the second about 2 s."""
    if ctx.attempt < 3:
        raise ConnectionRefusedError("the service is not up yet")
    return f"answered at attempt {ctx.attempt}"


@app.job
async def send_reminder(ctx: JobContext, input: dict[str, str]) -> str:
    """Wait in the queue until its time has come."""
    return f"{input['text']} at {datetime.now(UTC):%H:%M:%S} UTC"


@app.job
async def count_letters(ctx: JobContext, input: dict[str, str]) -> int:
    """Be one of very many."""
    return len(input["word"])
