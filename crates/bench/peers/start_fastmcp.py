"""FastMCP's proxy as its documentation starts it: start_fastmcp.py PORT CONFIG [shared]

A session with the server for each request, or with `shared` one for all.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.server import create_proxy

port, config = int(sys.argv[1]), json.loads(sys.argv[2])
http = {"host": "127.0.0.1", "port": port, "show_banner": False, "log_level": "WARNING"}


async def shared():
    async with Client(config) as client:
        await create_proxy(client).run_http_async(**http)


asyncio.run(shared() if "shared" in sys.argv[3:] else create_proxy(config).run_http_async(**http))
