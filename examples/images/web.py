"""The pipeline's front door: pictures come in over HTTP, and their thumbnails can be asked for."""

import asyncio
from hashlib import sha256
from typing import Any
from uuid import UUID

from examples.images.app import BUCKET, app, aws, make_thumbnails
from fastapi import FastAPI, HTTPException, Request

from forge import UnknownJob
from forge.http import create_app

MOST_BYTES = 10 * 1024**2
TYPES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}

web = FastAPI(title="Images")
# Forge's own API beside ours: jobs, dead letters, and /forge/metrics.
web.mount("/forge", create_app(app))


@web.post("/images", status_code=202)
async def upload(request: Request) -> dict[str, Any]:
    """Store a picture and ask for its thumbnails; the same picture again is the same job."""
    mime_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if mime_type not in TYPES:
        raise HTTPException(415, f"send one of {', '.join(TYPES)} as the body")
    body = await _body(request)
    app.metrics.api.upload_size_bytes.labelled(mime_type).observe(len(body))
    key = f"uploads/{sha256(body).hexdigest()[:32]}.{TYPES[mime_type]}"
    await asyncio.to_thread(
        aws("s3").put_object, Bucket=BUCKET, Key=key, Body=body, ContentType=mime_type
    )
    # Stored first: a job never looks for a picture that is not there yet.
    handle = await make_thumbnails.dispatch({"key": key}, idempotency_key=key)
    return {"job_id": str(handle.id), "key": key, "deduplicated": handle.deduplicated}


@web.get("/images/{job_id}")
async def status(job_id: UUID) -> dict[str, Any]:
    """Say how far the thumbnails of an upload are."""
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
    """Read the body, but no more of it than is allowed, whatever its headers say."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"send at most {MOST_BYTES} bytes")
    if not body:
        raise HTTPException(422, "send the picture as the body of the request")
    return bytes(body)
