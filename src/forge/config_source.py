"""Where settings come from: forge.toml, then the FORGE_* variables; and what is wrong with them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from forge.core.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)
FILE_NAME = "forge.toml"


def read_settings(model: type[Model], path: Path | None, env: Mapping[str, str]) -> Model:
    """Fill a model from the file and the environment, or raise every fault at once."""
    found = _Found(model)
    label = str(path or FILE_NAME)
    found.take_file(label, _read_file(path))
    found.take_environment(env)
    try:
        settings = model.model_validate(found.values)
    except ValidationError as error:
        found.problems += [found.explain(fault) for fault in error.errors()]
    if found.problems:
        raise ConfigError("\n".join(found.problems), found.problems)
    return settings


def _read_file(path: Path | None) -> dict[str, Any]:
    file = path or Path(FILE_NAME)
    if path is None and not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file; create it or correct the path") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); check its path") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML ({error}); correct that line") from None


class _Found:
    """The values found so far, where each came from, and what is wrong."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.sections = {
            name: list(field.annotation.model_fields)
            for name, field in model.model_fields.items()
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        }
        self.keys = [name for name in model.model_fields if name not in self.sections]
        self.values: dict[str, Any] = {}
        self.origins: dict[tuple[str, ...], str] = {}
        self.problems: list[str] = []

    def take_file(self, label: str, content: Mapping[str, Any]) -> None:
        for name, value in content.items():
            if name in self.keys:
                self._put((name,), value, label)
            elif name not in self.sections:
                self.problems.append(f"{label}: {self._unknown_at_the_top(name, value)}")
            elif not isinstance(value, dict):
                self.problems.append(f"{label}: {name} must be a section, written [{name}]")
            else:
                self._take_section(label, name, value)

    def _take_section(self, label: str, section: str, content: Mapping[str, Any]) -> None:
        known = self.sections[section]
        for key, value in content.items():
            if key in known:
                self._put((section, key), value, label)
            else:
                hint = _suggestion(key, known, f"[{section}]")
                self.problems.append(f"{label}: [{section}] {key} is not a setting; {hint}")

    def take_environment(self, env: Mapping[str, str]) -> None:
        for key in self.keys:
            if value := env.get(_variable(key)):
                self._put((key,), value, _variable(key))
        for section, keys in self.sections.items():
            prefix = _variable(section) + "_"
            variables = [_variable(section, key) for key in keys]
            for variable in sorted(name for name in env if name.startswith(prefix)):
                value = env[variable]
                # An empty variable is how deployment files write "not set".
                if not value or _is_service_link(variable.removeprefix(prefix), value):
                    continue
                if variable in variables:
                    self._put((section, keys[variables.index(variable)]), value, variable)
                else:
                    hint = _suggestion(variable, variables, f"[{section}]")
                    self.problems.append(f"{variable} is not a setting; {hint}")

    def explain(self, fault: ErrorDetails) -> str:
        """Say where a refused value came from, its key and what is allowed."""
        place = tuple(str(step) for step in fault["loc"])[:2]
        message = fault["msg"].replace("Input should be", "must be").removeprefix("Value error, ")
        # A default can be at fault through another key, which the message then names.
        named = re.findall(r"\w+", message)
        near = {origin for key, origin in self.origins.items() if key[-1] in named}
        origin = self.origins.get(place) or ", ".join(sorted(near))
        key = place[0] if len(place) == 1 else f"[{place[0]}] {place[1]}"
        return f"{origin}: {key} {message}"

    def _put(self, place: tuple[str, ...], value: Any, origin: str) -> None:
        at = self.values
        for section in place[:-1]:
            at = at.setdefault(section, {})
        at[place[-1]] = value
        self.origins[place] = origin

    def _unknown_at_the_top(self, name: str, value: Any) -> str:
        if isinstance(value, dict):
            near = get_close_matches(name, self.sections, n=1)
            known = ", ".join(f"[{section}]" for section in self.sections)
            hint = f"did you mean [{near[0]}]?" if near else f"use one of {known}"
            return f"[{name}] is not a section; {hint}"
        for section, keys in self.sections.items():
            if name in keys:
                return f"{name} is not a setting here; move it below [{section}]"
        return f"{name} is not a setting; {_suggestion(name, self.keys, 'the top level')}"


def _variable(*names: str) -> str:
    return "_".join(("FORGE", *names)).upper()


def _is_service_link(key: str, value: str) -> bool:
    """Tell variables that Kubernetes sets for a service named forge-worker from ours."""
    linked = re.fullmatch(r"SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?", key)
    return linked is not None or value.startswith(("tcp://", "udp://", "sctp://"))


def _suggestion(name: str, known: Iterable[str], place: str) -> str:
    known = list(known)
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"{place} takes {', '.join(known)}"
