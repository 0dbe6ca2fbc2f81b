"""Rows inserted manually, bypassing every check of the library."""

import asyncio
import hashlib
import json
import sys
import urllib.error
import urllib.request

from faultbench.client import Client
from faultbench.postgres import free_port
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage

TOKEN = "faultbench-token-for-the-operator-of-this-run"
SECRET = "faultbench-secret-that-signs-watch-tokens-0123"
# JSON that PostgreSQL accepts and readers may fail to parse.
INPUTS = {
    "a number of 100,000 digits": '{"a": ' + "9" * 100_000 + "}",
    "5,000 nested arrays": "[" * 5_000 + "]" * 5_000,
    "a text instead of an object": '"just a text"',
    "null": "null",
    "a large exponent": '{"a": 1e400}',
    "a key of 100,000 characters": '{"' + "k" * 100_000 + '": 1}',
    "bidi controls": '{"mark": "\u202egnp.exe"}',
    "markup": '{"mark": "<script>alert(1)</script>"}',
}


@fault(
    58,
    "rows inserted manually: huge numbers, deep JSON, odd keys",
    "lists, API and commands show them; the worker dead-letters unreadable rows",
)
async def inserted_manually(stage: Stage) -> None:
    client = await stage.client()
    await client.dispatch_many(3, "work")
    for text in INPUTS.values():
        await client.value(
            "insert into forge_jobs (job_type, input) values ('empty', $1::text::jsonb)",
            text,
        )
    await client.value(
        "insert into forge_jobs (job_type, input) values ('no such type \u202e', '{}') returning id"
    )
    address = await _serve(stage, client)
    await _all_readers(stage, client, address, "while they wait")

    worker = await stage.worker(client)
    await until(lambda: _is_done(client), 60, "the worker has completed or dead-lettered each row")
    counts = await client.fetch(
        "select status, count(*) as n from forge_jobs where job_type = 'empty' group by status"
    )
    stage.note("became " + ", ".join(f"{row['n']} {row['status']}" for row in counts))
    await _all_readers(stage, client, address, "afterwards")
    stage.require(worker.is_alive, "the worker exited")
    mark = await client.dispatch("work")
    await client.until_status(mark, "completed")


async def _is_done(client: Client) -> bool:
    waiting = (
        "select count(*) from forge_jobs where job_type in ('empty', 'work') "
        "and status in ('pending', 'claimed', 'running', 'retry')"
    )
    return bool(await client.value(waiting) == 0)


async def _serve(stage: Stage, client: Client) -> str:
    """Start `forge server` and return its address."""
    port = free_port()
    hashed = hashlib.sha256(TOKEN.encode()).hexdigest()
    config = stage.folder / "forge.toml"
    config.write_text(
        f'[auth]\nsecret = "{SECRET}"\n[[auth.tokens]]\nname = "bench"\nsha256 = "{hashed}"\n'
        'roles = ["user", "staff", "manager"]\n'
    )
    stage.spawn(
        sys.executable, "-m", "forge.cli.main", "server", stage.workshop.app,
        f"--config={config}", f"--port={port}",
        env={"FORGE_DATABASE_URL": client.url},
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    await until(lambda: _status(f"{address}/readyz"), 60, "the server is ready")
    return address


async def _status(url: str) -> int | None:
    def request_status() -> int | None:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                json.loads(response.read())
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code if error.code != 503 else None
        except OSError:
            return None

    return await asyncio.to_thread(request_status)


async def _all_readers(stage: Stage, client: Client, address: str, when: str) -> None:
    """Read the rows through every list."""
    wrong = []
    for path in ("/_api/jobs", "/api/jobs/admin/queue/", "/api/jobs/admin/dlq/"):
        code = await _status(f"{address}{path}")
        if code != 200:
            wrong.append(f"GET {path}: {code}")
    for command in (("jobs", "list", "--limit=100"), ("dlq", "list"), ("dlq", "groups")):
        process = stage.forge(client, *command)
        code = await process.ended(60)
        if code or "Traceback" in process.log():
            wrong.append(f"forge {' '.join(command)}: {code} {process.log()[-200:]}")
    stage.require(not wrong, f"{when}: {'; '.join(wrong)}")
