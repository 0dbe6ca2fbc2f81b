"""An app whose isolated handlers print, warn and log."""

import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import forge
from forge import JobContext

app = forge.Forge()
if "forge.worker.handlers.child" in sys.orig_argv:
    print("imported by a child")


@app.job(isolation="process")
def shout(ctx: JobContext, input: dict[str, Any]) -> None:
    print("to standard output")
    print("to standard error", file=sys.stderr)
    sys.stdout.write("without an end of line")
    warnings.warn("a warning", stacklevel=1)
    subprocess.run(["echo", "from a program"], check=True)
    logging.getLogger("shop").warning("low on %s", "tea", extra={"left": 3})
    logging.getLogger("shop").info("tea is on")
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("shop").exception("it failed")


@app.job(isolation="process", max_attempts=1)
async def die_loudly(ctx: JobContext, input: dict[str, Any]) -> None:
    print("last words", file=sys.stderr, flush=True)
    os._exit(5)
