"""An app whose handler blocks the event loop."""

import time
from pathlib import Path
from typing import Any

import forge
from forge import JobContext

app = forge.Forge()


@app.job
async def block(ctx: JobContext, input: dict[str, Any]) -> None:
    """Wait for a file and block the event loop."""
    gate = Path(input["gate"])
    Path(f"{gate}.reached").touch()  # noqa: ASYNC240
    while not gate.exists():  # noqa: ASYNC240
        time.sleep(0.02)  # noqa: ASYNC251
