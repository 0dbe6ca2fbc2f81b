"""Secrets in settings are never shown."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from forge.config.settings import Config
from tests.config.settings import EVERYTHING, problems


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hush@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:hu:sh@h1:1,h2:2/db", "postgresql://u:***@h1:1,h2:2/db"),
        ("postgresql://u:hu/s?h#@x@h/db", "postgresql://u:***@h/db"),
        ("postgresql://:hush@h/db", "postgresql://:***@h/db"),
        ("postgresql://h/db?password=hush&a=b", "postgresql://h/db?password=***&a=b"),
        ("postgresql://h:1/db?user=u&password=hu@sh", "postgresql://h:1/db?user=u&password=***"),
        ("postgresql://h/db?sslpassword=hush", "postgresql://h/db?sslpassword=***"),
        ("postgresql://h/db?pass%77ord=hush", "postgresql://h/db?pass%77ord=***"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    config = Config.load(env={"FORGE_DATABASE_URL": url})

    assert config.database.url == url
    assert config.to_redacted()["database"]["url"] == shown
    for written in (repr(config), str(config), repr(config.database), f"{config.database}"):
        assert shown in written
        assert "hush" not in written


def test_secrets_are_never_shown(file: Path) -> None:
    file.write_text(EVERYTHING)

    config = Config.load(file, env={})

    for written in (str(config.to_redacted()), repr(config), repr(config.auth), str(config.server)):
        assert "secret that has" not in written
        assert "another secret" not in written
        assert "hush" not in written
    assert config.to_redacted()["auth"]["secret"] == "***"


def test_the_secrets_can_come_from_variables(file: Path) -> None:
    file.write_text("[auth.jwt]\nalgorithm = 'HS256'\nissuer = 'us'\naudience = 'forge'")

    auth = Config.load(
        file, env={"FORGE_AUTH_SECRET": "a" * 32, "FORGE_AUTH_JWT_SECRET": "b" * 32}
    ).auth

    assert auth.secret == "a" * 32
    assert auth.jwt is not None
    assert auth.jwt.secret == "b" * 32


def test_a_refused_url_is_not_shown_either() -> None:
    [problem] = problems(env={"FORGE_DATABASE_URL": "mysql://u:hush@h/db"})
    assert problem.startswith("FORGE_DATABASE_URL: [database] url must be")
    assert "hush" not in problem

    with pytest.raises(ValidationError) as refused:
        Config.model_validate({"database": {"url": "mysql://u:hush@h/db"}})
    assert "hush" not in str(refused.value)
