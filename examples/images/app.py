"""The image pipeline: create thumbnails of an upload and invalidate cached ones."""

import os
from functools import cache
from typing import Any

from examples.images.pictures import Unusable, thumbnails
from pydantic import BaseModel

from forge import Forge, JobContext, NonRetryable
from forge.integrations.aws import client

BUCKET = os.environ.get("IMAGES_BUCKET", "images")
DISTRIBUTION = os.environ.get("IMAGES_DISTRIBUTION")

# forge.toml, or FORGE_TRANSPORT_KIND and FORGE_TRANSPORT_SQS_QUEUE_URL, select SQS.
app = Forge()


class Upload(BaseModel):
    """An uploaded image in S3."""

    key: str


@app.job(timeout="2m", max_attempts=5)
def make_thumbnails(ctx: JobContext, upload: Upload) -> list[str]:
    """Create the thumbnails of an image, store them, and invalidate them in CloudFront.

    Every step is idempotent: it writes the same bytes under the same keys, and the id of the job
    identifies the invalidation.
    """
    try:
        body = _fetched(upload.key)
        ctx.progress(20, "fetched")
        made = thumbnails(body)
    except Unusable as error:
        app.metrics.worker.image_processing_errors_total.labelled(error.kind).add()
        raise NonRetryable(str(error)) from error
    ctx.progress(60, "resized")
    keys = [f"thumbnails/{upload.key.removeprefix('uploads/')}/{t.name}.webp" for t in made]
    for key, thumbnail in zip(keys, made, strict=True):
        aws("s3").put_object(Bucket=BUCKET, Key=key, Body=thumbnail.body, ContentType="image/webp")
    ctx.progress(90, "stored")
    _invalidate(keys, str(ctx.job_id))
    return keys


def _fetched(key: str) -> bytes:
    s3 = aws("s3")
    try:
        body: bytes = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except s3.exceptions.NoSuchKey:
        raise Unusable("missing", f"{key} no longer exists. Upload it again.") from None
    return body


@cache
def aws(service: str) -> Any:
    """Return the client for a service, created on first use."""
    return client(app, service)


def _invalidate(keys: list[str], reference: str) -> None:
    if DISTRIBUTION is not None:
        paths = {"Quantity": len(keys), "Items": [f"/{key}" for key in keys]}
        aws("cloudfront").create_invalidation(
            DistributionId=DISTRIBUTION,
            InvalidationBatch={"Paths": paths, "CallerReference": reference},
        )
