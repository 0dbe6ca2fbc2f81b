"""The dashboard: its page and its files."""

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from forge.http.dashboard.files import BuiltFile, assets, page

router = APIRouter(include_in_schema=False)

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)
REVALIDATE = "no-cache"
# The names of these files change with their content.
IMMUTABLE = "public, max-age=31536000, immutable"


@router.api_route("/", methods=["GET", "HEAD"], name="dashboard")
def get_page(request: Request) -> Response:
    """Return the dashboard; it signs in by itself."""
    settings = request.app.state.forge.config.dashboard
    return _answer(request, page(settings.label, settings.trace_url), REVALIDATE)


@router.api_route("/assets/{asset}", methods=["GET", "HEAD"], name="dashboard_file")
def get_asset(request: Request, asset: str) -> Response:
    """Return a script, a stylesheet or an image of the dashboard."""
    found = assets().get(asset)
    if found is None:
        # A page of an older version, which was open during an upgrade.
        raise HTTPException(404)
    return _answer(request, found, IMMUTABLE)


def _answer(request: Request, file: BuiltFile, cache_control: str) -> Response:
    headers = {
        "Cache-Control": cache_control,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = file.body
    if file.compressed is not None and _accepts_gzip(request):
        body = file.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=file.media_type)


def _accepts_gzip(request: Request) -> bool:
    accepted = request.headers.get("accept-encoding", "").split(",")
    return any(coding.partition(";")[0].strip() == "gzip" for coding in accepted)
