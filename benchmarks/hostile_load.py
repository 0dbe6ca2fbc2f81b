"""Hostile requests from a separate process: `benchmarks.hostile_load URL TOKEN KIND`."""

import asyncio
import sys
from typing import Any

import httpx

COUNT = 16
INPUTS: dict[str, Any] = {
    "calm": {"user_id": 42, "template": "welcome"},
    "keys": {f"key{n}": n for n in range(14_000)},
    "secrets": {f"k{n}_token": f"secret-{n}" for n in range(5_000)},
    "names": {"text": " ".join(f"name{n}: x" for n in range(14_000))},
    "digits": {"text": "1 " * 100_000},
}


async def main(url: str, token: str, kind: str) -> None:
    """Dispatch inputs of a kind, list them and search in them."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
        responses = await asyncio.gather(
            *(
                client.post("/_api/jobs/no_op/dispatch", json={"args": INPUTS[kind]})
                for _ in range(COUNT)
            )
        )
        queries: list[dict[str, str | int]] = [
            {"limit": COUNT},
            {"limit": COUNT, "q": "not in any of them"},
        ]
        for query in queries:
            responses.append(await client.get("/_api/jobs", params=query))
        for response in responses:
            response.raise_for_status()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
