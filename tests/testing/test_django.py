"""The kit in Django's TestCase: jobs run on the connection of the test, which is rolled back."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from urllib.parse import parse_qs, urlsplit

FILES = {
    "settings.py": """
        DATABASES = {{"default": {{
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "{name}", "USER": "{user}", "HOST": "{host}", "PORT": "{port}",
            "TEST": {{"NAME": "{name}"}},
        }}}}
        INSTALLED_APPS = ["shop"]
        SECRET_KEY = "of no use"
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        USE_TZ = True
        """,
    "shop/__init__.py": "",
    "shop/models.py": """
        from django.db import models

        class Order(models.Model):
            state = models.CharField(max_length=20, unique=True)
        """,
    "shop/jobs.py": """
        import asyncio
        import threading
        from django.db import connection, transaction
        from forge import Forge, JobContext
        from shop.models import Order

        app = Forge(database_url="{url}")
        THREADS = set()

        @app.job
        def ship(ctx: JobContext, input: dict) -> int:
            THREADS.add(threading.current_thread())
            Order.objects.create(state=f"attempt {{ctx.attempt}}")
            if ctx.attempt == 1:
                Order.objects.create(state="attempt 1")  # fails, and with it the transaction
            with transaction.atomic():
                app.sync.dispatch(mail, {{"id": input["id"]}}, conn=connection)
            return Order.objects.count()

        @app.job
        async def mail(ctx: JobContext, input: dict) -> list:
            ctx.progress(50, "half")
            return [order.state async for order in Order.objects.all()]
        """,
    "shop/tests.py": """
        import threading
        from django.db import connection
        from django.test import TestCase, TransactionTestCase
        from forge import testing
        from forge.testing import sync
        from shop.jobs import THREADS, app, mail, ship
        from shop.models import Order

        class ShopTests(TestCase):
            def test_jobs_run_in_the_transaction(self):
                handle = app.sync.dispatch(ship, {{"id": 1}}, conn=connection)
                self.assertEqual(sync.run_all(app, conn=connection).completed, 2)
                (mailed,) = sync.dispatched(app, mail, conn=connection)
                self.assertEqual(mailed.output, ["attempt 2"])
                self.assertEqual(THREADS, {{threading.current_thread()}})
                sync.assert_dispatched(app, ship, {{"id": 1}}, times=1, conn=connection)

            def test_nothing_is_left_of_other_tests(self):
                sync.assert_not_dispatched(app, ship, conn=connection)
                sync.assert_not_dispatched(app, ship)

            async def test_async_tests_run_them_too(self):
                from asgiref.sync import sync_to_async
                await sync_to_async(app.sync.dispatch)(mail, {{"id": 2}}, conn=connection)
                self.assertEqual((await testing.run_all(app, conn=connection)).completed, 1)

            def test_errors_of_handlers_are_raised(self):
                app.sync.dispatch(ship, {{}}, conn=connection)
                with self.assertRaises(KeyError):
                    sync.run_all(app, conn=connection)

        class CommittedTests(TransactionTestCase):
            def test_jobs_run_on_committed_rows(self):
                handle = app.sync.dispatch(mail, {{"id": 3}})
                self.assertEqual(sync.run_one(handle), [])
        """,
}


def test_jobs_run_in_djangos_test_cases(database_url: str, tmp_path: Path) -> None:
    address = urlsplit(database_url)
    place = parse_qs(address.query)
    values = {
        "name": address.path[1:],
        "user": address.username,
        "host": place["host"][0],
        "port": place["port"][0],
        "url": database_url,
    }
    (tmp_path / "shop").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(dedent(text).format(**values))

    command = ["-m", "django", "test", "--keepdb", "--settings=settings", "--timing"]
    ran = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )

    assert "Ran 5 tests" in ran.stderr, ran.stderr
    assert ran.returncode == 0, ran.stderr
