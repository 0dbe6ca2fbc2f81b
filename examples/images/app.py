"""The jobs of the image pipeline: an upload becomes thumbnails, and caches forget the old ones."""

import os
from functools import cache
from typing import Any

from examples.images.pictures import Unusable, thumbnails
from pydantic import BaseModel

from forge import Forge, JobContext, NonRetryable
from forge.integrations.aws import client

BUCKET = os.environ.get("IMAGES_BUCKET", "images")
DISTRIBUTION = os.environ.get("IMAGES_DISTRIBUTION")

# forge.toml, or FORGE_TRANSPORT_KIND and FORGE_TRANSPORT_SQS_QUEUE_URL, name SQS as the transport.
app = Forge()


class Upload(BaseModel):
    """A picture that lies in S3."""

    key: str


@app.job(timeout="2m", max_attempts=5)
def make_thumbnails(ctx: JobContext, upload: Upload) -> list[str]:
    """Make the thumbnails of a picture, store them, and have CloudFront fetch them anew.

    Every step may happen twice without harm: the same bytes are written under the same names, and
    an invalidation is known by the job that asked for it.
    """
    try:
        body = _fetched(upload.key)
        ctx.progress(20, "fetched")
        made = thumbnails(body)
    except Unusable as error:
        app.metrics.worker.image_processing_errors_total.labelled(error.kind).add()
        raise NonRetryable(str(error)) from error
    ctx.progress(60, "shrunk")
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
        raise Unusable("missing", f"{key} is not there any more; upload it again") from None
    return body


@cache
def aws(service: str) -> Any:
    """Return the client for a service, made when it is first needed."""
    return client(app, service)


def _invalidate(keys: list[str], reference: str) -> None:
    if DISTRIBUTION is not None:
        paths = {"Quantity": len(keys), "Items": [f"/{key}" for key in keys]}
        aws("cloudfront").create_invalidation(
            DistributionId=DISTRIBUTION,
            InvalidationBatch={"Paths": paths, "CallerReference": reference},
        )
