"""An app with a job in a process of its own, which a child process can import."""

import os
from typing import Any

from forge import Config, Forge, JobContext

shop = Forge(Config(), database_url="postgresql://nobody@127.0.0.1:1/development")
PARENT = os.environ.setdefault("SHOP_PARENT", str(os.getpid()))


@shop.job(isolation="process", worker_capability="gpu", queue="media")
def resize(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
    return {"width": input["width"], "is_child": os.getpid() != int(PARENT)}
