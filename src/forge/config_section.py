"""What every section of the settings has in common: frozen, and no keys but its own."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One section of forge.toml."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
