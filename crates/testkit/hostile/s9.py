"""Results that clients do not read stay within the memory budget, and their memory is given back.

A server (Streamable HTTP with a JSON body, Streamable HTTP with events, and stdio) answers with 4 MB each. Clients send
the call and do not read the answer; then they leave.
"""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hostile import AttackWorked, wait_for

CLIENTS, SIZE = {"json": 100, "events": 30, "pipe": 30}, 4_000_000

# The budget, what it may be exceeded by (a message more than it, and what an allocator keeps for a while), and what may
# remain beside twice the memory of before. Sizes are small enough for a debug build.
BUDGET, EXCESS, REMAINDER = 16 << 20, 40 << 20, 16 << 20

LARGE = json.dumps({"content": [{"type": "text", "text": "x" * SIZE}]}).encode()
SMALL = b'{"content":[{"type":"text","text":"xxxxxxxxx"}]}'
TOOLS = [
    {"name": "large", "inputSchema": {"type": "object"}},
    {"name": "small", "inputSchema": {"type": "object"}},
]

STDIO = f'''
    import json, sys

    LARGE = '{{"content":[{{"type":"text","text":"' + "x" * {SIZE} + '"}}]}}'

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, result = message["method"], None
        if method == "initialize":
            result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}
        elif method == "tools/list":
            result = {{"tools": json.loads({json.dumps(json.dumps(TOOLS))})}}
        elif method == "tools/call":
            if message["params"]["name"] == "large":
                print('{{"jsonrpc":"2.0","id":%d,"result":%s}}' % (message["id"], LARGE), flush=True)
                continue
            result = {{"content": [{{"type": "text", "text": "x" * 9}}]}}
        elif method == "ping":
            result = {{}}
        answer = {{"result": result}} if result is not None else {{"error": {{"code": -32601, "message": "unknown"}}}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **answer}}), flush=True)
'''


class Handler(BaseHTTPRequestHandler):
    """A legacy Streamable HTTP server; `events` decides the form of its answers."""

    protocol_version = "HTTP/1.1"
    events = False

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, result = message.get("method"), None
        if "id" not in message or not isinstance(message["id"], int):
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            result = LARGE if message["params"]["name"] == "large" else SMALL
        head = b'{"jsonrpc":"2.0","id":%d,' % message["id"]
        if result is None:
            body = head + b'"error":{"code":-32601,"message":"unknown"}}'
        else:
            result = result if isinstance(result, bytes) else json.dumps(result).encode()
            body = head + b'"result":' + result + b"}"
        try:
            self.send_response(200)
            if self.events:
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(b"event: message\ndata: " + body + b"\n\n")
                self.close_connection = True
            else:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
        except OSError:
            self.close_connection = True


class EventHandler(Handler):
    events = True


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        """A connection that the gateway closes is no news."""


def listening(handler):
    server = Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/mcp"


def resident(gateway):
    with open(f"/proc/{gateway.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def unread(gateway, name):
    """Sends a call of a tool and never reads the answer."""
    client = gateway.client()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": name, "arguments": {}, "_meta": client.meta}}
    body = json.dumps(message).encode()
    head = "".join(f"{key}: {value}\r\n" for key, value in {
        "Host": gateway.address, "Authorization": f"Bearer {gateway.token}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": client.REVISION,
        "Mcp-Method": "tools/call", "Mcp-Name": name, "Content-Length": len(body),
    }.items())
    connection = socket.create_connection((gateway.host, gateway.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
    return connection


def attack(consort):
    command = consort.server("large.py", STDIO)
    config = consort.write("consort.toml", f"""
        [mcp.pipe]
        command = {json.dumps(command[0])}
        args = {json.dumps(command[1:])}

        [mcp.json]
        url = "{listening(Handler)}"

        [mcp.events]
        url = "{listening(EventHandler)}"

        [consort]
        naming = "{{server}}_{{name}}"

        [consort.limits]
        held_bytes = {BUDGET}
        """)
    gateway = consort.serve(config)
    client = gateway.client()
    servers = ["json", "events", "pipe"]
    wait_for(lambda: {f"{it}_large" for it in servers} <= set(client.tools()), what="the tools")
    for server in servers:
        text = client.call(f"{server}_large", {})["result"]["content"][0]["text"]
        if len(text) != SIZE:
            raise RuntimeError(f"the result of `{server}` has {len(text)} bytes")
    time.sleep(1)
    before = resident(gateway)
    for server in servers:
        count = CLIENTS[server]
        connections = [unread(gateway, f"{server}_large") for _ in range(count)]
        peak = 0
        until = time.monotonic() + 3.5
        while time.monotonic() < until:
            peak = max(peak, resident(gateway))
            time.sleep(0.02)
        begun = time.monotonic()
        try:
            meanwhile = client.call(f"{server}_small", {}, timeout=20)
        except TimeoutError:
            meanwhile = "no answer within 20 s"
        took = time.monotonic() - begun
        for connection in connections:
            connection.close()
        print(f"      S9: {server}: {count} unread results: {before >> 20} MiB, at most {peak >> 20} MiB; "
              f"a small call took {took * 1000:.0f} ms meanwhile")
        if peak > before + BUDGET + EXCESS:
            raise AttackWorked(f"`{server}`: memory grew from {before >> 20} to {peak >> 20} MiB")
        if "xxxxxxxxx" not in json.dumps(meanwhile):
            raise AttackWorked(f"`{server}`: a small call fails meanwhile: {json.dumps(meanwhile)[:300]}")
    allowed = 2 * before + REMAINDER
    try:
        wait_for(lambda: resident(gateway) <= allowed, 6, "the memory to be given back")
    except TimeoutError:
        raise AttackWorked(f"{resident(gateway) >> 20} MiB remain of {before >> 20} before") from None
    print(f"      S9: {resident(gateway) >> 20} MiB remain")
    text = client.call("json_large", {})["result"]["content"][0]["text"]
    if len(text) != SIZE:
        raise AttackWorked("a large call fails afterwards")
