"""The API beside Django: its callers are the users of Django; their tenants come from a hook."""

import asyncio
from typing import Any

import httpx
from django.contrib.auth.models import Permission, User
from django.core.checks import run_checks
from django.test import Client, TestCase, TransactionTestCase, override_settings

from forge.integrations.django import app
from orders.jobs import confirm
from orders.tests.kit import job_rows

TENANTS = override_settings(FORGE={"TENANT": "shop.tenants.tenant_of"})
Call = tuple[str, str]


def user(name: str, *permissions: str, email: str = "") -> User:
    made = User.objects.create_user(name, email)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return made


class Mounted(TransactionTestCase):
    def test_permissions_are_roles(self) -> None:
        root = User.objects.create_superuser("root")

        def me(name: str, *permissions: str) -> Any:
            (found,) = calls(user(name, *permissions), ("GET", "/_api/me"))
            return found.json()

        assert me("ann", "user", "staff")["roles"] == ["staff", "user"]
        assert me("bob", "staff", "viewer")["read_only"] is True
        (found,) = calls(root, ("GET", "/_api/me"))
        assert found.json()["roles"] == ["manager", "staff", "user"]
        assert found.json()["tenant_id"] is None

    def test_who_is_not_signed_in_or_has_no_permission_is_refused(self) -> None:
        gone = user("gone", "user")
        User.objects.filter(pk=gone.pk).update(is_active=False)

        statuses = [
            calls(who, ("GET", "/_api/jobs"))[0].status_code
            for who in (None, gone, user("none"), user("some", "user"))
        ]

        assert statuses == [401, 401, 403, 200]

    def test_a_session_cannot_be_used_by_pages_of_other_sites(self) -> None:
        headers = {"Sec-Fetch-Site": "cross-site"}

        (found,) = calls(user("ann", "user"), ("GET", "/_api/jobs"), headers=headers)

        assert found.status_code == 403

    def test_requests_are_in_the_name_of_the_user(self) -> None:
        job = app.sync.dispatch(confirm, {"order": 1}, delay="1h")

        found, dashboard = calls(
            user("ann", "user"), ("POST", f"/_api/jobs/{job.id}/cancel"), ("GET", "/")
        )

        assert found.status_code == 202, found.text
        assert dashboard.headers["content-type"].startswith("text/html")
        (auth,) = job_rows("auth->>'name'")[-1]
        assert auth == "ann"

    def test_a_watch_token_of_a_user_is_valid(self) -> None:
        job = app.sync.dispatch(confirm, {"order": 1})
        ann = user("ann", "user")
        (made,) = calls(ann, ("POST", f"/_api/jobs/{job.id}/watch_token"))
        token = made.json()["watch_token"]

        (live,) = calls(None, ("GET", f"/_api/jobs/{job.id}/live?watch_token={token}"))

        assert live.json()["id"] == str(job.id)

    @TENANTS
    def test_users_see_the_jobs_of_their_tenant(self) -> None:
        for tenant in (7, 8):
            app.sync.dispatch(confirm, {"order": tenant}, tenant_id=tenant)

        def seen(who: User) -> Any:
            (found,) = calls(who, ("GET", "/_api/jobs"))
            if found.status_code != 200:
                return found.status_code
            return {job["tenant_id"] for job in found.json()["items"]}

        assert seen(user("ann", "user", email="ann@7.example")) == {7}
        assert seen(user("none", "user", email="none@example")) == 403
        assert seen(user("all", "user", "operator", email="all@example")) == {7, 8}


class Requests(TestCase):
    @TENANTS
    def test_jobs_that_a_request_dispatches_have_its_tenant(self) -> None:
        client = Client()
        client.force_login(user("ann", email="ann@7.example"))

        for path in ("/order/", "/order-async/"):
            assert client.get(path).status_code == 200
        app.sync.dispatch(confirm, {"order": 2})

        assert job_rows("tenant_id") == [(7,), (7,), (None,)]

    def test_a_hook_that_does_not_exist_is_an_error(self) -> None:
        for path in ("shop.tenants.nowhere", "shop.settings.SECRET_KEY"):
            with self.settings(FORGE={"TENANT": path}):
                found = [one.msg for one in run_checks() if one.id == "forge.E001"]
                assert found, path
                assert "TENANT" in found[0]


def calls(
    who: User | None, *requests: Call, headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """Send requests to the mounted API with the session of a user."""
    client = Client()
    if who is not None:
        client.force_login(who)
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}

    async def send() -> list[httpx.Response]:
        from shop.asgi import application

        transport = httpx.ASGITransport(application)  # type: ignore[arg-type]
        async with httpx.AsyncClient(
            transport=transport, base_url="http://shop/forge", cookies=cookies, headers=headers
        ) as http:
            try:
                return [await http.request(*request) for request in requests]
            finally:
                await app.close()

    return asyncio.run(send())
