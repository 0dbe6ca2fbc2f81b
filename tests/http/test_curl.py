"""The dispatch of the tutorials, sent by curl itself as it is printed there."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from forge import Forge
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import add_jobs

COMMAND = """curl -X POST http://localhost:8080/_api/jobs/export_users/dispatch \\
  -H "Content-Type: application/json" \\
  -d '{"args": {"format": "csv"}}'
"""


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
async def test_the_command_works_as_it_is_printed(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken, tmp_path: Path
) -> None:
    add_jobs(app)
    address = (await serve(make_server_app(app))).removeprefix("http://")
    # What the command does not say: the token, and that port 8080 is another one here.
    (tmp_path / ".curlrc").write_text(
        f'header = "Authorization: {token("user")["Authorization"]}"\n'
        f'connect-to = "localhost:8080:{address}"\nnoproxy = "*"\nsilent\nfail-with-body\n'
    )

    process = await asyncio.create_subprocess_shell(
        COMMAND,
        env={**os.environ, "CURL_HOME": str(tmp_path), "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    written, _ = await process.communicate()

    assert process.returncode == 0, written
    made = json.loads(written)
    assert made.keys() == {"job_id", "status", "deduplicated", "watch_token"}
    assert (made["status"], made["deduplicated"]) == ("pending", False)
    job = await app.get(UUID(made["job_id"]))
    assert (job.job_type, job.input) == ("export_users", {"format": "csv", "rows": 1})


async def test_the_same_request_byte_by_byte(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken
) -> None:
    add_jobs(app)
    host, _, port = (await serve(make_server_app(app))).removeprefix("http://").rpartition(":")
    body = b'{"args": {"format": "csv"}}'
    reader, writer = await asyncio.open_connection(host, int(port))

    writer.write(
        b"POST /_api/jobs/export_users/dispatch HTTP/1.1\r\nHost: localhost:8080\r\n"
        b"User-Agent: curl/8.7.1\r\nAccept: */*\r\nContent-Type: application/json\r\n"
        b"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s"
        % (token("user")["Authorization"].encode(), len(body), body)
    )
    status = await asyncio.wait_for(reader.readline(), 20)
    writer.close()

    assert status == b"HTTP/1.1 202 Accepted\r\n"
