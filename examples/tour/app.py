"""The jobs of the tour: four functions and their options, and those of a bakery."""

import asyncio
from datetime import UTC, datetime

from examples.tour import bakery
from pydantic import BaseModel

from forge import Forge, JobContext, Retry

app = Forge()
bakery.register(app)


class Cake(BaseModel):
    """The input of bake_cake. Forge validates it at dispatch, and again when a worker reads it."""

    flavour: str
    layers: int


@app.job(timeout="1m")
async def bake_cake(ctx: JobContext, cake: Cake) -> str:
    """Run for a few seconds and report progress."""
    steps = ["weigh the flour", *(f"bake layer {n + 1}" for n in range(cake.layers)), "add icing"]
    for done, step in enumerate(steps):
        ctx.progress(100 * done / len(steps), step)
        await asyncio.sleep(0.5)
    return f"a {cake.flavour} cake of {cake.layers} layers"


@app.job(retry=Retry(max_attempts=5, backoff="exponential", max_backoff="10s"))
async def call_flaky_service(ctx: JobContext) -> str:
    """Fail twice. Forge waits about 1 s after the first attempt and about 2 s after the second."""
    if ctx.attempt < 3:
        raise ConnectionRefusedError("the service is not up yet")
    return f"answered at attempt {ctx.attempt}"


@app.job
async def send_reminder(ctx: JobContext, input: dict[str, str]) -> str:
    """Wait in the queue until it is due."""
    return f"{input['text']} at {datetime.now(UTC):%H:%M:%S} UTC"


@app.job
async def count_letters(ctx: JobContext, input: dict[str, str]) -> int:
    """Do very little: the tour dispatches ten thousand of these."""
    return len(input["word"])
