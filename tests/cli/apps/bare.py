"""An app that has no jobs yet."""

import forge

app = forge.Forge()
