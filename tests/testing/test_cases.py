"""ForgeTestCase, run by unittest itself."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from forge.store.embedded import Cluster
from tests.testing.test_plugin import SHOP

TESTS = """
    from forge.testing import ForgeTestCase, assert_dispatched, run_all, sync
    from shop import app, export_users, mail

    class ShopTests(ForgeTestCase):
        app = app

        async def test_a_job_runs(self):
            await export_users.dispatch({"format": "csv"})
            self.assertEqual((await run_all(self.app)).completed, 1)
            await assert_dispatched(self.app, mail, times=1)

        def test_a_plain_test_has_a_database_of_its_own(self):
            sync.assert_not_dispatched(self.app, mail)
            handle = self.app.sync.dispatch(mail, {"to": "ann"})
            sync.run_one(handle)

        async def test_a_worker_runs_in_the_loop(self):
            await self.start_worker()
            handle = await export_users.dispatch({"format": "pdf"})
            self.assertEqual(await handle.result(timeout="20s"), {"file": "users.pdf"})

        async def test_forgets_to_await(self):
            assert_dispatched(self.app, mail)
    """


def test_unittest_runs_a_case_with_databases_of_its_own(server: Cluster, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / "test_shop.py").write_text(dedent(TESTS))
    env = os.environ | {"FORGE_TEST_DATABASE_URL": server.url("postgres")}

    ran = subprocess.run(
        [sys.executable, "-m", "unittest"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert "Ran 4 tests" in ran.stderr, ran.stderr
    assert "FAILED (failures=1)" in ran.stderr, ran.stderr
    assert "assert_dispatched was not awaited" in ran.stderr
