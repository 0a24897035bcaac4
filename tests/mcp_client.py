"""Tools of `mqreplay mcp`, called by the protocol's own client over stdio."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client


def asked(root: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return what the tools answer, each as it was asked, or the text of its error."""

    words = ["-m", "mqreplay.cli", "mcp", "--warehouse", root]

    async def ask() -> list[Any]:
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        found = []
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.tools)
            found.append(sorted(tool.name for tool in tools.tools))
            for name, arguments in calls:
                answer = await session.call_tool(name, arguments)
                text = answer.content[0].text
                if not answer.is_error:
                    assert json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) == text
                    assert answer.structured_content == json.loads(text)
                found.append(text if answer.is_error else json.loads(text))
        return found

    return anyio.run(ask)
