"""A demonstration of the image pipeline: `python -m examples.images`.

Starts PostgreSQL, a local AWS mock (moto), the web server and a worker. Uploads valid and broken
images and shows the results. In a terminal it stays up until Ctrl-C.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
from examples.images.local_aws import local_aws

WORKER = ["worker", "examples.images.app:app", "--log-level", "off"]
SHOWN = (
    "upload_size_bytes_count",
    "image_processing_errors_total",
    "s3_operation_duration_seconds_count",
    "s3_operation_errors_total",
    "cloudfront_operation_duration_seconds_count",
    "external_duration_seconds_count",
    "job_processed_total",
)


def main() -> int:
    with local_aws(), suppress(KeyboardInterrupt):
        asyncio.run(show())
    return 0


async def show() -> None:
    # Imported late: the app reads its settings on import, and only now is moto's address known.
    from examples.images.app import app
    from examples.images.samples import samples

    print("Starting PostgreSQL, the web server and a worker …", flush=True)
    async with app, running() as (web, metrics), httpx.AsyncClient(base_url=web) as http:
        uploads = [(sample, await _upload(http, sample)) for sample in samples()]
        for sample, upload in uploads:
            job = await _ended(http, upload["job_id"])
            again = " (same job as before)" if upload["deduplicated"] else ""
            print(f"{sample.name}, {len(sample.body):,} bytes: {job['status']}{again}")
            for line in job["thumbnails"] or [job["error"]]:
                print(f"    {line}")
        print("\nMetrics:")
        for address in (f"{web}/forge/metrics", metrics):
            for line in (await http.get(address)).text.splitlines():
                if line.startswith(SHOWN):
                    print(f"    {line}")
        if sys.stdout.isatty():
            print(f"\ncurl -H 'Content-Type: image/jpeg' --data-binary @photo.jpg {web}/images")
            print("It stays up until Ctrl-C.")
            await asyncio.Event().wait()


@asynccontextmanager
async def running() -> AsyncIterator[tuple[str, str]]:
    """Run the web server and a worker. Yields the address of the site and of the worker metrics."""
    import uvicorn
    from examples.images.app import app
    from examples.images.web import web

    from forge.cli.processes.child_process import ForgeProcess

    await app.migrate()
    database = await (await app.session()).database()
    port = _free_port()
    env = {"FORGE_DATABASE_URL": database.url, "FORGE_WORKER_METRICS_PORT": str(port)}
    worker = await ForgeProcess.start(WORKER, env=env)
    # The socket is open before the server starts, so that early requests wait.
    site = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(web, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve([site]))
    try:
        yield "http://{}:{}".format(*site.getsockname()), f"http://127.0.0.1:{port}/metrics"
    finally:
        server.should_exit = True
        worker.stop()
        await asyncio.gather(serving, worker.ended())


async def _upload(http: httpx.AsyncClient, sample: Any) -> dict[str, Any]:
    headers = {"Content-Type": sample.mime_type}
    answer = await http.post("/images", content=sample.body, headers=headers)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


async def _ended(http: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    """Poll the job, as a browser would, until it is final."""
    async with asyncio.timeout(60):
        while True:
            job: dict[str, Any] = (await http.get(f"/images/{job_id}")).json()
            if job["status"] in ("completed", "failed", "dead_letter", "cancelled"):
                return job
            await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", os.getcwd())  # so that the worker can import the example
    sys.exit(main())
