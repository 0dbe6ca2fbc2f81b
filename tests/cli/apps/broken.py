"""A module that fails to import at a known line."""

raise RuntimeError("the settings are missing")
