"""Harness for attacks: a private home for `consort`, a running gateway, a plain MCP client, small servers."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time


class AttackWorked(Exception):
    """An attack had an effect that it must not have."""


def wait_for(condition, seconds=10.0, what="a condition"):
    """Polls until `condition()` is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


class Consort:
    """The binary under attack, with a home folder of its own."""

    def __init__(self, binary, home):
        self.binary = str(binary)
        self.home = home
        self.folder = home / "folder"
        self.folder.mkdir()
        self.running = []

    def environment(self, extra=None):
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return kept | {"HOME": str(self.home)} | (extra or {})

    def write(self, name, text, mode=0o644):
        """Writes a file below the working folder and returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        path.chmod(mode)
        return path

    def server(self, name, source):
        """Writes a Python program and returns the command that starts it, as a list."""
        return [sys.executable, str(self.write(name, source))]

    def run(self, *arguments, env=None, stdin=None, cwd=None, timeout=60):
        """Runs one command to its end and returns it with `stdout`, `stderr` and `returncode`."""
        return subprocess.run(
            [self.binary, *map(str, arguments)], env=self.environment(env), cwd=cwd or self.folder,
            input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=timeout,
        )

    def serve(self, config, *flags, env=None):
        """Starts `consort serve` with a config file (a path) on a free port."""
        gateway = Gateway(self, config, flags, env)
        self.running.append(gateway)
        return gateway

    def close(self):
        for gateway in self.running:
            gateway.close()


class Gateway:
    """A running `consort serve`."""

    def __init__(self, consort, config, flags, env):
        self.process = subprocess.Popen(
            [consort.binary, "--config", str(config), "serve", "--listen", "127.0.0.1:0", "--json", *map(str, flags)],
            env=consort.environment(env), cwd=consort.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        )
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(10)
            self.reader.join(5)
            raise RuntimeError(f"serve ended with {self.process.returncode}: {self.log()}")
        said = json.loads(line)
        self.address = said["endpoint"].removeprefix("http://").removesuffix("/mcp")
        self.host, port = self.address.rsplit(":", 1)
        self.port = int(port)
        file = said.get("token_file")
        self.token = pathlib.Path(file).read_text().strip() if file else None

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def log(self):
        """Everything written to standard error so far."""
        return "".join(self.lines)

    def request(self, method, path, body=None, headers=None, token=True, timeout=60):
        """Sends one HTTP request; returns status, headers and body. `token` may be a token, True or None."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        sent = dict(headers or {})
        bearer = self.token if token is True else token
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")
        finally:
            connection.close()

    def client(self, token=True, path="/mcp", capabilities=None):
        """A modern (2026-07-28) MCP client of this gateway."""
        return Client(self, token, path, capabilities or {})

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


class Client:
    """A client that sends exactly the bytes it is told to."""

    REVISION = "2026-07-28"

    def __init__(self, gateway, token, path, capabilities):
        self.gateway, self.token, self.path = gateway, token, path
        self.meta = {
            "io.modelcontextprotocol/protocolVersion": self.REVISION,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }

    def post(self, body, method, name=None, timeout=60):
        """Posts a body (text or an object) and returns the last JSON-RPC message of the answer."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.REVISION,
            "Mcp-Method": method,
        }
        if name is not None:
            headers["Mcp-Name"] = name
        status, answered, text = self.gateway.request("POST", self.path, body, headers, self.token, timeout)
        if answered.get("content-type", answered.get("Content-Type", "")).startswith("text/event-stream"):
            data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            text = [line for line in data if line][-1]
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return {"status": status, "text": text}

    def send(self, method, params, name=None, timeout=60):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": self.meta}}
        return self.post(message, method, name, timeout)

    def tools(self):
        return [tool["name"] for tool in self.send("tools/list", {})["result"]["tools"]]

    def call(self, name, arguments, timeout=60):
        return self.send("tools/call", {"name": name, "arguments": arguments}, name, timeout)
