"""The dashboard's page and files over HTTP: policy, caching, compression, the label."""

import re

import httpx
from fastapi import FastAPI

from forge.http.dashboard.files import assets
from tests.apps import MakeApp
from tests.http.conftest import MakeServerApp

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types svelte-trusted-html"
)


def client(api: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://forge.test")


async def test_page_has_the_policy_and_is_revalidated(http: httpx.AsyncClient) -> None:
    page = await http.get("/")
    again = await http.get("/", headers={"If-None-Match": page.headers["etag"]})

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert (again.status_code, again.content) == (304, b"")


async def test_page_names_only_its_own_files_by_relative_addresses(http: httpx.AsyncClient) -> None:
    page = (await http.get("/")).text
    named = re.findall(r'(?:src|href)="([^"]+)"', page)

    assert len(named) >= 3
    assert [address for address in named if not address.startswith("./assets/")] == []
    for address in named:
        assert (await http.get(f"/{address}")).status_code == 200


async def test_files_are_immutable_and_compressed(http: httpx.AsyncClient) -> None:
    scripts = [name for name in assets() if name.endswith(".js")]

    for name in scripts:
        packed = await http.get(f"/assets/{name}", headers={"Accept-Encoding": "br, gzip;q=0.8"})
        plain = await http.get(f"/assets/{name}", headers={"Accept-Encoding": "identity"})

        assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
        assert packed.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert packed.content == plain.content == assets()[name].body
    assert (await http.get("/assets/index-of-an-older-version.js")).status_code == 404
    assert (await http.get("/assets/..%2findex.html")).status_code == 404


async def test_head_request_returns_headers_only(http: httpx.AsyncClient) -> None:
    page = await http.head("/")

    assert page.status_code == 200
    assert page.content == b""


async def test_page_has_the_address_of_traces(
    make_app: MakeApp, make_server_app: MakeServerApp
) -> None:
    trace_url = "https://traces.example/trace/{trace_id}?from=forge&tab=1"
    async with client(make_server_app(make_app(dashboard={"trace_url": trace_url}))) as http:
        page = (await http.get("/")).text

    assert f'<meta name="forge-trace-url" content="{trace_url.replace("&", "&amp;")}" />' in page


async def test_label_is_escaped(make_app: MakeApp, make_server_app: MakeServerApp) -> None:
    label = '"><script>alert(1)</script>'
    async with client(make_server_app(make_app(dashboard={"label": label}))) as http:
        page = (await http.get("/")).text

    assert "alert(1)</script>" not in page
    assert "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in page


async def test_disabled_dashboard_is_not_served(
    make_app: MakeApp, make_server_app: MakeServerApp
) -> None:
    async with client(make_server_app(make_app(dashboard={"enabled": False}))) as http:
        statuses = [(await http.get(path)).status_code for path in ("/", "/assets/index.js")]

        assert statuses == [404, 404]
        assert (await http.get("/livez")).status_code == 200
