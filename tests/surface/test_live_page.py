"""The JavaScript of the page on live progress follows a real job on a real server."""

import asyncio

import pytest
from tools.node import command

from forge import JobContext
from tests.apps import MakeApp, Work
from tests.http.conftest import (
    MakeServerApp,
    Serve,
    api_url,
    make_app,
    make_server_app,
    serve,
    work,
)
from tests.http.live_client import watch_token
from tests.surface.pages import CHECKOUT, blocks

__all__ = ["api_url", "make_app", "make_server_app", "serve", "work"]

PAGE = CHECKOUT / "docs" / "howto" / "live-progress.md"
# Node.js hides its EventSource behind this option.
OPTIONS = ("--experimental-eventsource", "--no-warnings")
# Stand-ins for the browser's page: output is printed instead of shown.
AROUND = """
const [jobId, watchToken] = process.argv.slice(1);
const progressBar = {{ set value(percent) {{ console.log(percent); }} }}, label = {{}};
{code}
"""


@pytest.mark.parametrize("call", ["new WebSocket(", "new EventSource(", "fetch("])
async def test_the_script_of_the_page_shows_progress_and_ends_with_the_job(
    make_app: MakeApp, work: Work, make_server_app: MakeServerApp, serve: Serve, call: str
) -> None:
    app, was_shown = make_app(), asyncio.Event()

    @app.job
    async def export(ctx: JobContext) -> None:
        ctx.progress(40, "almost")
        await was_shown.wait()

    address = await serve(make_server_app(app))
    (code,) = [block.code for block in blocks(PAGE, "js") if call in block.code]
    code = code.replace("https://forge.shop.example", address)
    code = code.replace("wss://forge.shop.example", address.replace("http", "ws"))
    handle = await export.dispatch()

    script = await asyncio.create_subprocess_exec(
        *command("node", *OPTIONS, "-e", AROUND.format(code=code)),
        *(str(handle.id), watch_token(handle.id)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert script.stdout is not None
    shown = [await _line(script.stdout)]
    await work(app)
    while "40" not in shown:
        shown.append(await _line(script.stdout))
    was_shown.set()
    rest, _ = await asyncio.wait_for(script.communicate(), 60)

    assert shown[0] == "0"
    assert "100" in rest.decode().split()
    assert script.returncode == 0, rest.decode()


async def _line(output: asyncio.StreamReader) -> str:
    line = await asyncio.wait_for(output.readline(), 30)
    assert line, "the script ended early"
    return line.decode().strip()
