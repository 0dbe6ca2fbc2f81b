"""The setting FORGE: sections as in forge.toml, and keys of this integration in capitals."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.utils.crypto import salted_hmac

from forge.config.settings import Config
from forge.core.errors import ConfigError
from forge.core.suggestion import suggestion

NAME = "FORGE"
PACKAGE = "forge.integrations.django"
# Ignored, because it would have workers use another database than dispatches.
URL_VARIABLE = "FORGE_DATABASE_URL"


class DjangoSettings(NamedTuple):
    """What only this integration reads."""

    # The alias in DATABASES of the database that has Forge's tables.
    database: str = "default"
    # The modules of each installed app that define jobs; "tasks" too where TASKS names Forge.
    autodiscover: tuple[str, ...] = ("jobs",)
    # The dotted path of a function that returns the tenant of a request.
    tenant: str | None = None

    @classmethod
    def current(cls) -> Self:
        """Read the upper-case keys of FORGE, or raise one ConfigError for all problems."""
        given = {key: value for key, value in _given().items() if key.isupper()}
        problems = [
            f"{NAME}: {key} is not a setting; {suggestion(key, KEYS, NAME)}"
            for key in given
            if key not in KEYS
        ]
        found = {KEYS[key]: value for key, value in given.items() if key in KEYS}
        if "database" in found and not isinstance(found["database"], str):
            problems.append(f'{NAME}: DATABASE must be an alias of DATABASES, such as "default"')
        if "tenant" in found and not isinstance(found["tenant"], str):
            problems.append(f'{NAME}: TENANT must name a function, such as "shop.tenants.of"')
        if "autodiscover" in found:
            modules = found["autodiscover"]
            if isinstance(modules, list | tuple) and all(isinstance(one, str) for one in modules):
                found["autodiscover"] = tuple(modules)
            else:
                problems.append(f'{NAME}: AUTODISCOVER must be a list, such as ["jobs", "tasks"]')
        if problems:
            raise ConfigError("\n".join(problems), problems)
        if "autodiscover" not in found and _has_task_backend():
            found["autodiscover"] = ("jobs", "tasks")
        return cls(**found)


KEYS = {name.upper(): name for name in DjangoSettings._fields}


def forge_config() -> Config:
    """Return the sections of FORGE as settings of an app; FORGE_* variables override them."""
    sections = {key: value for key, value in _given().items() if not key.isupper()}
    env = {name: value for name, value in os.environ.items() if name != URL_VARIABLE}
    config = Config.from_mapping(sections, label=NAME, env=env)
    if config.auth.secret is not None or not settings.SECRET_KEY:
        return config
    # Every process of the project has the same secret without a further setting.
    secret = salted_hmac("forge.auth", "secret", algorithm="sha256").hexdigest()
    auth = config.auth.model_copy(update={"secret": secret})
    return config.model_copy(update={"auth": auth})


def _has_task_backend() -> bool:
    backends = getattr(settings, "TASKS", None) or {}
    return any(
        str(backend.get("BACKEND", "")).startswith(PACKAGE)
        for backend in backends.values()
        if isinstance(backend, Mapping)
    )


def _given() -> Mapping[str, Any]:
    given = getattr(settings, NAME, {})
    if not isinstance(given, Mapping):
        raise ConfigError(
            f'{NAME} must be a dict, such as {{"worker": {{"max_concurrent": 20}}}}, not '
            f"{type(given).__name__}"
        )
    return given
