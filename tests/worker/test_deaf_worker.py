"""A worker that hears nothing, as behind a pooler: it looks once in `poll_interval`."""

from forge import JobContext
from tests.apps import MakeApp, Work


async def test_jobs_are_found_by_the_poll_alone(make_app: MakeApp, work: Work) -> None:
    # The poll interval of a worker that relies on notifications.
    app = make_app(database={"pooler": True}, idle_poll_interval="1h")

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await work(app)

    for _ in range(3):
        assert await (await ping.dispatch()).result(10) == "pong"
