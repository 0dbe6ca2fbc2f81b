"""What every section of the settings has in common: frozen, and no keys but its own."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic._internal._model_construction import ModelMetaclass

from forge.config_source import refused


class _RaisesConfigError(ModelMetaclass):
    # An overridden __init__ would also run for each section that pydantic fills, and would hide
    # from the faults of the whole where they lie.
    def __call__(self, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except ValidationError as error:
            raise refused(self, error) from None  # type: ignore[arg-type]


class Section(BaseModel, metaclass=_RaisesConfigError):
    """One section of forge.toml; what it does not take raises a ConfigError."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
