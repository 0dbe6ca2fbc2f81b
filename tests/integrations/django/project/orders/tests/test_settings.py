"""The setting FORGE, the database, and what the system checks report."""

import os
from unittest import mock

from django.core.checks import run_checks
from django.core.management import call_command
from django.test import SimpleTestCase, override_settings

from forge import ConfigError
from forge.core.database_url import connection_target
from forge.integrations.django.database import url_of
from forge.integrations.django.settings import DjangoSettings, forge_config


def problems() -> dict[str, str]:
    """Return the first message of each check of Forge's that fails."""
    found = [one for one in run_checks() if str(one.id).startswith("forge.")]
    return {one.id: one.msg for one in reversed(found)}


class Settings(SimpleTestCase):
    def test_sections_are_those_of_forge_toml_and_variables_override_them(self) -> None:
        with (
            self.settings(FORGE={"worker": {"max_concurrent": 7, "crash_limit": 9}}),
            mock.patch.dict(os.environ, {"FORGE_WORKER_MAX_CONCURRENT": "8"}),
        ):
            worker = forge_config().worker

        assert (worker.max_concurrent, worker.crash_limit) == (8, 9)

    def test_the_secret_comes_from_the_secret_key_unless_it_is_set(self) -> None:
        of_the_key = forge_config().auth.secret
        with self.settings(SECRET_KEY="another"):
            of_another = forge_config().auth.secret
        with self.settings(FORGE={"auth": {"secret": "x" * 32}}):
            given = forge_config().auth.secret

        assert len(of_the_key or "") == 64
        assert of_the_key not in (of_another, "of no use")
        assert given == "x" * 32

    def test_every_parameter_of_a_connection_reaches_the_url(self) -> None:
        given = {"dbname": "a b", "user": "me", "password": "p@s/s:?", "host": "db", "port": "6543"}
        options = {"sslmode": "require", "connect_timeout": 5, "application_name": "shop"}
        ignored = {"client_encoding": "UTF8", "prepare_threshold": None, "context": object()}

        target = connection_target(url_of(given | options | ignored))

        assert (target.database, target.user, target.password) == ("a b", "me", "p@s/s:?")
        assert [tuple(host) for host in target.hosts] == [("db", 6543)]
        assert target.connect_timeout == 5
        assert target.settings["application_name"] == "shop"


class Checks(SimpleTestCase):
    databases = {"default"}

    def test_a_good_project_has_no_problems(self) -> None:
        assert problems() == {}

    def test_each_mistake_in_the_setting_is_one_error(self) -> None:
        wrong = {"worker": {"max_concurent": 5, "crash_limit": 0}}
        for given, expected in (
            (wrong, "FORGE: [worker] max_concurent is not a setting; did you mean max_concurrent?"),
            ({"DATABSE": "default"}, "FORGE: DATABSE is not a setting; did you mean DATABASE?"),
            ({"DATABASE": 5}, "FORGE: DATABASE must be an alias of DATABASES, such as"),
            ({"AUTODISCOVER": "jobs"}, "FORGE: AUTODISCOVER must be a list, such as"),
            ([], "FORGE must be a dict, such as"),
        ):
            # The app reloads its settings, and refuses the wrong ones.
            with mock.patch("django.conf.settings.FORGE", given):
                assert problems()["forge.E001"].startswith(expected), given

    def test_an_unknown_alias_and_another_database_are_errors(self) -> None:
        with mock.patch("django.conf.settings.FORGE", {"DATABASE": "jobs"}):
            assert "'jobs', which is not in DATABASES" in problems()["forge.E002"]
        with mock.patch("django.db.connection.vendor", "sqlite"):
            assert "Forge needs PostgreSQL" in problems()["forge.E003"]

    def test_an_ignored_url_is_a_warning(self) -> None:
        with mock.patch.dict(os.environ, {"FORGE_DATABASE_URL": "postgresql://elsewhere/x"}):
            assert "has no effect" in problems()["forge.W001"]
            assert forge_config().database.url is None

    @override_settings(FORGE={"AUTODISCOVER": ["jobs"]})
    def test_modules_to_discover_can_be_named(self) -> None:
        assert DjangoSettings.current().autodiscover == ("jobs",)

    def test_wrong_settings_are_refused_with_every_problem(self) -> None:
        with (
            self.assertRaises(ConfigError) as refused,
            mock.patch("django.conf.settings.FORGE", {"X": 1, "Y": 2}),
        ):
            DjangoSettings.current()

        assert len(refused.exception.problems) == 2

    def test_the_models_need_no_further_migration(self) -> None:
        call_command("makemigrations", "forge", check=True, dry_run=True, verbosity=0)
