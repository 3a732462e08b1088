"""Delegates to a sub-agent with the official Python SDK: over standard input and output and over HTTP, with the
handshake of the older protocol and in the newer one without.

usage: delegate.py BINARY   (the environment must keep the state folder apart: ATTACHE_HOME)
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

SAID = "The child has read its task."
HERE = Path(__file__).resolve().parent


async def delegate(client: Client, how: str) -> None:
    """Creates a sub-agent, waits for it, reads what it said, and acknowledges the notice of its end."""
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert len(tools) == 9, tools

    async def call(tool: str, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.structured_content

    made = await call("agent_session_create", initial_message="Read your task.")
    session, root = made["session_id"], made["root_session_id"]
    await call("agent_session_on_complete", session_id=session)
    waited = await call("agent_session_wait", session_id=session, wait_for_idle=True)
    assert waited["result_preview"] == SAID, waited
    read = await call("agent_session_read_events", session_id=session, event_types=["assistant"])
    assert read["events"][0]["content_preview"] == SAID, read
    listed = await call("agent_session_list", root_session_id=root)
    assert listed["sessions"][-1]["session_id"] == session, listed
    seen = [notice["id"] for notice in listed["notices"]]
    assert (await call("agent_session_list", acknowledge=seen))["notices"] == []

    resource = await client.read_resource(f"attache://session/{session}")
    assert SAID in resource.contents[0].text, resource
    refused = await client.call_tool("agent_session_get", {"session_id": "nothing"})
    assert refused.is_error and refused.structured_content["error"]["code"] == "unknown-session"
    print(f"python: {how}: ok")


async def main(binary: str) -> None:
    model = f"scripted/{HERE.parent / 'script.yaml'}"
    for mode in ("legacy", "auto"):
        server = StdioServerParameters(
            command=binary, args=["mcp", "--model", model], env=dict(os.environ)
        )
        async with Client(server, mode=mode) as client:
            await delegate(client, f"stdio, {mode}")

    daemon = subprocess.Popen(
        [binary, "serve", "--listen", "127.0.0.1:0", "--store", "memory:"],
        env={**os.environ, "ATTACHE_MODEL": model, "ATTACHE_HOME": os.environ["ATTACHE_HOME"] + "-http"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = daemon.stderr.readline().split()[2].rstrip(";")
        token = Path(os.environ["ATTACHE_HOME"] + "-http", "mcp-token").read_text().strip()
        for mode in ("legacy", "auto"):
            headers = {"authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
                async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                    await delegate(client, f"http, {mode}")
    finally:
        daemon.terminate()
        daemon.wait()


asyncio.run(main(sys.argv[1]))
