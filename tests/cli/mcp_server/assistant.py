"""An assistant: the SDK's own client, in front of a real `forge mcp`."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, Tool

from forge.cli.tokens import block_of, hash_of
from tests.cli.command import FORGE


class Assistant:
    """Calls tools, and remembers which."""

    def __init__(self, client: Client, tools: dict[str, Tool]) -> None:
        self.client = client
        self.tools = tools
        self.called: set[str] = set()
        self.read: list[str] = []

    async def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool that must succeed, and return its result."""
        result = await self._call(name, arguments)
        assert not result.is_error, text_of(result)
        return json.loads(result.content[0].text)  # type: ignore[union-attr]

    async def refusal(self, name: str, **arguments: Any) -> str:
        """Call a tool that must fail, and return the error."""
        result = await self._call(name, arguments)
        assert result.is_error, text_of(result)
        return text_of(result)

    async def _call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        result = await self.client.call_tool(name, arguments)
        self.called.add(name)
        self.read.append(text_of(result))
        return result


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@asynccontextmanager
async def assistant(
    *options: str, token: str, folder: Path, url: str | None = None
) -> AsyncIterator[Assistant]:
    """Start `forge mcp` as an editor does, and connect to it; it logs to `stderr` of the folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")}
    env |= {"FORGE_TOKEN": token} | ({"FORGE_DATABASE_URL": url} if url else {})
    server = StdioServerParameters(command=str(FORGE), args=["mcp", *options], env=env, cwd=folder)
    with (folder / "stderr").open("w") as log:
        async with Client(stdio_client(server, errlog=log), read_timeout_seconds=60) as client:
            listed = (await client.list_tools()).tools
            yield Assistant(client, {tool.name: tool for tool in listed})


def let_in(folder: Path, **tokens: dict[str, Any]) -> None:
    """Write settings in which the token of each holder is the name of the holder."""
    entries = [
        block_of({"name": name, "sha256": hash_of(name), **rights})
        for name, rights in tokens.items()
    ]
    written = folder / "forge.toml.new"
    written.write_text("\n\n".join(entries))
    written.replace(folder / "forge.toml")  # a process that rereads it sees no half of it
