"""The image example: one command runs it, and broken pictures become dead letters."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from examples.images.pictures import MAX_PIXELS, Unusable, thumbnails
from examples.images.samples import samples
from PIL import Image

from forge.store.embedded import Cluster
from tests.examples.settings import on_database
from tests.template import empty_database

CHECKOUT = Path(__file__).parents[2]
GOOD = 3


@pytest.fixture(scope="module")
def ran(server: Cluster) -> Iterator[tuple[str, str]]:
    """The output of the command, and its database."""
    with empty_database(server) as url:
        command = [sys.executable, "-m", "examples.images"]
        env = os.environ | {"FORGE_DATABASE_URL": url}
        done = subprocess.run(
            command, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=110
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield done.stdout, url


def test_the_output_of_the_command_matches_the_database(ran: tuple[str, str]) -> None:
    output, database = ran

    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select status, count(*) from forge_jobs where queue = 'default' group by status"
        ).fetchall()

    assert dict(rows) == {"completed": GOOD, "dead_letter": 3}
    assert output.count(": completed") == GOOD + 1  # one picture was uploaded twice
    assert output.count("same job as before") == 1


def test_each_broken_picture_is_a_dead_letter_with_its_reason(ran: tuple[str, str]) -> None:
    with psycopg.connect(ran[1]) as connection:
        rows = connection.execute(
            "select error_message, error_class, attempt_count from forge_dead_letters"
        ).fetchall()

    messages = sorted(message for message, _, _ in rows)
    assert [re.sub(r" \(.*\)", "", message) for message in messages] == [
        "The image is too large. Send a smaller one.",
        "The image is truncated. Send it again.",
        "This is not an image. Send one of JPEG, PNG, WEBP, GIF.",
    ]
    assert {(error_class, tries) for _, error_class, tries in rows} == {("non_retryable", 1)}


@pytest.mark.parametrize(
    "line",
    [
        'upload_size_bytes_count{mime_type="image/jpeg"} 4.0',
        'upload_size_bytes_count{mime_type="image/png"} 3.0',
        'image_processing_errors_total{error_type="truncated"} 1.0',
        'image_processing_errors_total{error_type="too_large"} 1.0',
        'image_processing_errors_total{error_type="not_an_image"} 1.0',
        's3_operation_duration_seconds_count{bucket="images",operation="GetObject"} 6.0',
        's3_operation_duration_seconds_count{bucket="images",operation="PutObject"} 6.0',
        'cloudfront_operation_duration_seconds_count{operation="CreateInvalidation"} 3.0',
        'external_duration_seconds_count{operation="PutObject",service="s3"} 7.0',
    ],
)
def test_it_records_the_metrics_of_images_and_of_aws(ran: tuple[str, str], line: str) -> None:
    assert line in ran[0]


def test_every_job_was_announced_by_a_message(ran: tuple[str, str]) -> None:
    with psycopg.connect(ran[1]) as connection:
        left = connection.execute("select count(*) from forge_outbox").fetchone()
        enabled = connection.execute(
            "select count(*) from pg_trigger where tgname like 'forge_jobs_outbox%' "
            "and tgenabled <> 'D'"
        ).fetchone()

    assert (left, enabled) == ((0,), (2,))


async def test_a_missing_picture_is_not_found(database_url: str) -> None:
    from examples.images.app import app
    from examples.images.web import web

    transport = httpx.ASGITransport(web)
    async with (
        on_database(app, database_url),
        httpx.AsyncClient(transport=transport, base_url="http://images.test") as http,
    ):
        answer = await http.get(f"/images/{uuid4()}")

    assert answer.status_code == 404


def test_thumbnails_keep_the_aspect_ratio_and_apply_the_orientation() -> None:
    upright = next(sample for sample in samples() if "upright" in sample.name)

    made = {thumbnail.name: thumbnail for thumbnail in thumbnails(upright.body)}

    assert (made["small"].width, made["small"].height) == (85, 128)
    assert (made["large"].width, made["large"].height) == (341, 512)
    assert Image.open(BytesIO(made["large"].body)).format == "WEBP"


def test_a_picture_with_too_many_pixels_is_not_decoded() -> None:
    written = BytesIO()
    Image.new("L", (MAX_PIXELS // 1000 + 1, 1000)).save(written, "PNG")

    with pytest.raises(Unusable, match="too large") as caught:
        thumbnails(written.getvalue())

    assert caught.value.kind == "too_large"


def test_a_truncated_picture_is_unusable_but_does_not_crash() -> None:
    photo = samples()[2].body

    # Up to the checksums and the end marker, which are not part of the picture data.
    for end in range(0, len(photo) - 40, len(photo) // 60):
        with pytest.raises(Unusable):
            thumbnails(photo[:end])
