"""The HTTP API of the pipeline: upload images, and get the status of their thumbnails."""

import asyncio
from hashlib import sha256
from typing import Any
from uuid import UUID

from examples.images.app import BUCKET, app, aws, make_thumbnails
from fastapi import FastAPI, HTTPException, Request

from forge import UnknownJob
from forge.http import create_app

MAX_BYTES = 10 * 1024**2
TYPES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}

web = FastAPI(title="Images")
# Forge's API: jobs, dead letters, and /forge/metrics.
web.mount("/forge", create_app(app))


@web.post("/images", status_code=202)
async def upload(request: Request) -> dict[str, Any]:
    """Store an image and dispatch its job. Uploading the same image again returns the same job."""
    mime_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if mime_type not in TYPES:
        raise HTTPException(415, f"Send one of {', '.join(TYPES)} as the body.")
    body = await _body(request)
    app.metrics.api.upload_size_bytes.labelled(mime_type).observe(len(body))
    key = f"uploads/{sha256(body).hexdigest()[:32]}.{TYPES[mime_type]}"
    await asyncio.to_thread(
        aws("s3").put_object, Bucket=BUCKET, Key=key, Body=body, ContentType=mime_type
    )
    # Store before dispatch: a job must find its image.
    handle = await make_thumbnails.dispatch({"key": key}, idempotency_key=key)
    return {"job_id": str(handle.id), "key": key, "deduplicated": handle.deduplicated}


@web.get("/images/{job_id}")
async def status(job_id: UUID) -> dict[str, Any]:
    """Return the status of an upload's thumbnails."""
    try:
        job = await app.get(job_id)
    except UnknownJob as error:
        raise HTTPException(404, str(error)) from None
    return {
        "status": job.status,
        "progress": job.progress_percent,
        "thumbnails": job.output or [],
        "error": job.last_error,
    }


async def _body(request: Request) -> bytes:
    """Read the body up to the size limit, regardless of its headers."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise HTTPException(413, f"Send at most {MAX_BYTES} bytes.")
    if not body:
        raise HTTPException(422, "Send the image as the body of the request.")
    return bytes(body)
