"""Each extra, installed alone into a fresh virtual environment, does what it is for."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.surface.pages import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
EXTRAS = [extra for extra in PROJECT["optional-dependencies"] if extra != "all"]
LOCK = CHECKOUT / "requirements" / "dev.lock"
# A job from its definition to its result, in one process.
START = """
import asyncio, os
from forge import Config, Forge, JobContext, Worker

url = os.environ.get("FORGE_DATABASE_URL")
app = Forge(Config(worker={"metrics_port": "off"}), database_url=url)

@app.job
async def double(ctx: JobContext, input: dict[str, int]) -> int:
    return 2 * input["n"]

async def run(job):
    worker = Worker(app)
    running = asyncio.create_task(worker.run())
    print("result", await job.result(timeout=60))
    worker.drain()
    await running
"""
ALONE = """
async def main():
    async with app:
        await run(await double.dispatch({"n": 21}))
asyncio.run(main())
"""
PROGRAMS = {
    "": ALONE,
    "embedded": "assert url is None\n" + ALONE,
    "psycopg": """
import psycopg

def dispatch():
    with psycopg.connect(url) as conn:
        return app.sync.dispatch(double, {"n": 21}, conn=conn).id

async def main():
    async with app:
        await run(app.handle(await asyncio.to_thread(dispatch)))
asyncio.run(main())
""",
    "sqlalchemy": """
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

async def main():
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with app:
        async with AsyncSession(engine) as session, session.begin():
            job = await double.dispatch({"n": 21}, conn=session)
        await run(job)
    await engine.dispose()
asyncio.run(main())
""",
    "server": """
import httpx
from forge.http import create_app

async def main():
    transport = httpx.ASGITransport(create_app(app))
    async with app, httpx.AsyncClient(transport=transport, base_url="http://forge.test") as http:
        assert (await http.get("/readyz")).json() == {"status": "ready"}
        assert "html" in (await http.get("/")).headers["content-type"]
        await run(await double.dispatch({"n": 21}))
asyncio.run(main())
""",
    "aws": """
from forge.integrations.aws import client
client(app, "sqs", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
"""
    + ALONE,
    "otel": """
from forge.telemetry.traces import trace
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
otel.set_tracer_provider(TracerProvider())
otel.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
trace(app)
"""
    + ALONE
    + 'assert "double" in " ".join(span.name for span in spans.get_finished_spans())\n',
    "mcp": """
import sys
from pathlib import Path
from mcp import Client, StdioServerParameters
from forge.cli.tokens import block_of, hash_of

Path("forge.toml").write_text(block_of({"name": "a", "sha256": hash_of("t"), "roles": ["user"]}))
command = str(Path(sys.executable).parent / "forge")
env = {"FORGE_TOKEN": "t", "FORGE_DATABASE_URL": url}

async def main():
    async with app, Client(StdioServerParameters(command=command, args=["mcp"], env=env)) as mcp:
        await run(await double.dispatch({"n": 21}))
        assert '"double"' in (await mcp.call_tool("list_jobs", {})).content[0].text
asyncio.run(main())
""",
    "django": """
from django.conf import settings
from urllib.parse import urlsplit, parse_qs

parts = urlsplit(url)
settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:], "USER": parts.username,
        "HOST": parse_qs(parts.query)["host"][0] if not parts.hostname else parts.hostname,
        "PORT": parse_qs(parts.query).get("port", [parts.port or ""])[0],
    }},
)
import django
django.setup()
from django.db import connection, transaction

def dispatch():
    with transaction.atomic():
        return app.sync.dispatch(double, {"n": 21}, conn=connection).id

async def main():
    async with app:
        await run(app.handle(await asyncio.to_thread(dispatch)))
asyncio.run(main())
""",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return file


def test_every_extra_has_a_program() -> None:
    assert set(EXTRAS) <= PROGRAMS.keys()


@pytest.mark.parametrize("extra", ["", *EXTRAS], ids=lambda extra: extra or "none")
def test_job_runs_with_one_extra_alone(
    extra: str, wheel: Path, tmp_path: Path, database_url: str
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "-q"]
    _run([*uv, "venv", "--python", sys.executable, str(tmp_path / "venv")], tmp_path)
    wanted = (
        f"forge-jobs[{extra}] @ {wheel.as_uri()}" if extra else f"forge-jobs @ {wheel.as_uri()}"
    )
    _run([*uv, "pip", "install", "--python", str(python), "-c", str(LOCK), wanted], tmp_path)

    url = {} if extra == "embedded" else {"FORGE_DATABASE_URL": database_url}
    printed = _run([str(python), "-c", START + PROGRAMS[extra]], tmp_path, **url)

    assert printed.splitlines()[-1] == "result 42"


def _run(command: list[str], folder: Path, **more: str) -> str:
    without = {"PYTHONPATH", "FORGE_DATABASE_URL", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in without} | more
    ended = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout
