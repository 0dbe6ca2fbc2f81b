"""Reads settings from forge.toml, FORGE_* variables and Python, and explains errors in them."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic._internal._model_construction import ModelMetaclass
from pydantic_core import ErrorDetails

from forge.core.errors import ConfigError
from forge.core.suggestion import suggestion

Model = TypeVar("Model", bound=BaseModel)
FILE_NAME = "forge.toml"
OVERRIDES = "Config.load(…)"
# How similar an unknown variable must be to a known one to count as a typo: more than FORGE_WORKERS
# is to FORGE_WORKER_ID, because other programs may use such variables.
TYPO_SIMILARITY = 0.9


def read_settings(
    model: type[Model],
    path: Path | None,
    env: Mapping[str, str],
    overrides: Mapping[str, Any],
) -> Model:
    """Fill a model from file, environment and overrides; raise one ConfigError for all problems."""
    found = _Settings(model)
    found.take_file(str(path or FILE_NAME), _read_file(path))
    found.take_environment(env)
    found.take_file(OVERRIDES, {name: _as_table(value) for name, value in overrides.items()})
    return found.build()


def settings_from(
    model: type[Model], label: str, content: Mapping[str, Any], env: Mapping[str, str]
) -> Model:
    """Fill a model from what a framework's settings say, overridden by the environment."""
    found = _Settings(model)
    found.take_file(label, {name: _as_table(value) for name, value in content.items()})
    found.take_environment(env)
    return found.build()


def config_error(model: type[BaseModel], error: ValidationError) -> ConfigError:
    """Return the ConfigError for a model that was called with invalid values."""
    found = _Settings(model, f"{model.__name__}(…)")
    problems = [found.explain(fault) for fault in error.errors()]
    return ConfigError("\n".join(problems), problems)


def _as_table(value: Any) -> Any:
    """Return the values that were set in a section that is passed as a model."""
    if not isinstance(value, BaseModel):
        return value
    return {name: getattr(value, name) for name in value.model_fields_set}


def _read_file(path: Path | None) -> dict[str, Any]:
    file = path or Path(FILE_NAME)
    if path is None and not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: does not exist; create it or correct the path") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); check its path") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML ({error}); correct that line") from None


class _Settings(Generic[Model]):
    """The values read so far, where each came from, and the problems found."""

    def __init__(self, model: type[Model], origin: str = "") -> None:
        self.sections = {
            name: list(field.annotation.model_fields)
            for name, field in model.model_fields.items()
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        }
        self.model = model
        self.origin = origin  # of values without another origin
        self.keys = [name for name in model.model_fields if name not in self.sections]
        self.values: dict[str, Any] = {}
        self.origins: dict[tuple[str, ...], str] = {}
        self.problems: list[str] = []

    def build(self) -> Model:
        """Return the settings, or raise one ConfigError for all problems."""
        settings = None
        try:
            settings = self.model.model_validate(self.values)
        except ValidationError as error:
            self.problems += [self.explain(fault) for fault in error.errors()]
        if settings is None or self.problems:
            raise ConfigError("\n".join(self.problems), self.problems)
        return settings

    def take_file(self, label: str, content: Mapping[str, Any]) -> None:
        for name, value in content.items():
            if name in self.keys:
                self._put((name,), value, label)
            elif name not in self.sections:
                self.problems.append(f"{label}: {self._unknown_top_level(name, value)}")
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
                hint = suggestion(key, known, f"[{section}]")
                self.problems.append(f"{label}: [{section}] {key} is not a setting; {hint}")

    def take_environment(self, env: Mapping[str, str]) -> None:
        places = {_variable(*place): place for place in self._paths()}
        for variable in sorted(name for name in env if name.startswith(_variable(""))):
            value = env[variable]
            # Deployment files write "not set" as an empty variable.
            if not value or _is_service_link(variable, value):
                continue
            if variable in places:
                self._put(places[variable], value, variable)
            elif hint := self._hint(variable, list(places)):
                self.problems.append(f"{variable} is not a setting; {hint}")

    def _paths(self) -> Iterator[tuple[str, ...]]:
        """Yield the path of each setting, including nested tables; lists have no variable."""
        yield from ((key,) for key in self.keys)
        for section, keys in self.sections.items():
            for place in ((section, key) for key in keys):
                yield place
                annotation = _model_at(self.model, (section,)).model_fields[place[-1]].annotation
                if get_origin(annotation) is not tuple and _models_in(annotation):
                    inner = _model_at(self.model, place).model_fields
                    yield from ((*place, name) for name in inner)

    def _hint(self, variable: str, known: Sequence[str]) -> str | None:
        """Return a hint for an unknown variable; None if it is not one of ours."""
        for section in self.sections:
            if variable.startswith(prefix := _variable(section, "")):
                own = [name for name in known if name.startswith(prefix)]
                return suggestion(variable, own, f"[{section}]", prefix)
        near = get_close_matches(variable, known, n=1, cutoff=TYPO_SIMILARITY)
        return f"did you mean {near[0]}?" if near else None

    def explain(self, fault: ErrorDetails) -> str:
        """Return a line with the origin of an invalid value, its key and what is allowed."""
        place = tuple(str(step) for step in fault["loc"])
        if fault["type"] == "extra_forbidden":
            return self._unknown_nested(place)
        message = fault["msg"].replace("Input should be", "must be").removeprefix("Value error, ")
        message = message.replace("Field required", "is required")
        # A default can conflict with another key, which the message then names.
        named = re.findall(r"\w+", message)
        near = {origin for key, origin in self.origins.items() if key[-1] in named}
        origin = self._origin(place) or ", ".join(sorted(near)) or self.origin
        return f"{origin}: {_written(place)} {message}"

    def _origin(self, place: tuple[str, ...]) -> str | None:
        return self.origins.get(place) or self.origins.get(place[:2])

    def _unknown_nested(self, place: tuple[str, ...]) -> str:
        """Return the problem of an unknown key in a nested table."""
        known = _model_at(self.model, place[:-1]).model_fields
        hint = suggestion(place[-1], known, _written(place).rpartition(" ")[0] or "it")
        origin = self._origin(place) or self.origin
        return f"{origin}: {_written(place)} is not a setting; {hint}"

    def _put(self, place: tuple[str, ...], value: Any, origin: str) -> None:
        at = self.values
        for section in place[:-1]:
            at = at.setdefault(section, {})
            if not isinstance(at, dict):  # config_error as it is, by what the model wants there
                return
        at[place[-1]] = value
        self.origins[place] = origin

    def _unknown_top_level(self, name: str, value: Any) -> str:
        if isinstance(value, dict):
            near = get_close_matches(name, self.sections, n=1)
            known = ", ".join(f"[{section}]" for section in self.sections)
            hint = f"did you mean [{near[0]}]?" if near else f"use one of {known}"
            return f"[{name}] is not a section; {hint}"
        for section, keys in self.sections.items():
            if name in keys:
                return f"{name} is not a setting here; move it below [{section}]"
        return f"{name} is not a setting; {suggestion(name, self.keys, 'the top level')}"


def _written(place: tuple[str, ...]) -> str:
    """Format the path of a setting as it appears in the file."""
    if place[-1].isdigit() and any(step.isdigit() for step in place[:-1]):
        place = place[:-1]  # an index into a list of words is not needed
    *sections, key = place
    if key.isdigit():
        sections, key = list(place), ""
    path = ".".join(step for step in sections if not step.isdigit())
    number = next((f" number {int(step) + 1}" for step in sections if step.isdigit()), "")
    bracketed = f"[[{path}]]{number}" if number else f"[{path}]"
    return f"{bracketed} {key}".strip() if len(place) > 1 else place[0]


def _model_at(model: type[BaseModel], place: tuple[str, ...]) -> type[BaseModel]:
    """Return the model of the nested table at a path."""
    for step in place:
        if not step.isdigit():
            model = _models_in(model.model_fields[step].annotation)[0]
    return model


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]


def _variable(*names: str) -> str:
    return "_".join(("FORGE", *names)).upper()


def _is_service_link(variable: str, value: str) -> bool:
    """Whether Kubernetes set this variable for a service named forge-…, such as forge-worker."""
    linked = r"FORGE_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
    is_linked = re.fullmatch(linked, variable) is not None
    return is_linked or value.startswith(("tcp://", "udp://", "sctp://"))


class _RaisesConfigError(ModelMetaclass):
    # An overridden __init__ would also run for each nested section, and errors would lose the path
    # to their section.
    def __call__(self, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except ValidationError as error:
            raise config_error(self, error) from None  # type: ignore[arg-type]


class Section(BaseModel, metaclass=_RaisesConfigError):
    """One section of forge.toml; invalid values raise a ConfigError."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
