"""A module that cannot be imported, and says so at a known line."""

raise RuntimeError("the settings are missing")
