"""A schema full of costly patterns neither takes memory nor stops the gateway.

The server offers `plain`, whose schema is honest, and tools whose schemas are bombs: 1,000 patterns like
`\\p{L}{90}`, nested repetitions, many small patterns, and escapes that are dear to translate. They are called
through the command line, through an agent of a running gateway and through the gateway itself.
"""

import json
import statistics
import subprocess
import threading
import time

from hostile import AttackWorked

SERVER = r'''
    import json, sys

    def patterned(patterns):
        return {"type": "object", "properties": {f"m{n}": {"type": "string", "pattern": p} for n, p in enumerate(patterns)}}

    SCHEMAS = {
        "plain": {"type": "object", "properties": {"day": {"type": "string", "pattern": r"^\d{4}-\d{2}$"}}},
        "letters": patterned(r"\p{L}{90}x%d" % n for n in range(1000)),
        "fitting": patterned(r"^\p{L}{60}%d" % n for n in range(2)),
        "nested": patterned([r"((\p{L}{50}){50}){50}"]),
        "small": patterned("(a|b)*a(a|b){9}%d" % n for n in range(700)),
        "escapes": patterned([r"\S" * 10000]),
    }

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, result = message["method"], {}
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bomb", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": schema} for name, schema in SCHEMAS.items()]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": "ran " + message["params"]["name"]}]}
        elif method != "ping":
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''

BOMBS = ["letters", "fitting", "nested", "small", "escapes"]
ARGUMENTS = {"m0": "\u00e9" * 60, "m1": "ab" * 2000}

# What the gateway's memory may grow by, and what a health check may take on a busy machine: bytes and seconds.
MEMORY, MEDIAN, WORST = 200 << 20, 0.05, 0.25


def resident(gateway):
    """Resident bytes of the gateway's process."""
    with open(f"/proc/{gateway.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


class Health(threading.Thread):
    """Asks `/healthz` all the time and notes how long each answer took."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.gateway, self.over, self.took, self.peak = gateway, threading.Event(), [], 0

    def run(self):
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                status = self.gateway.request("GET", "/healthz", token=None, timeout=10)[0]
            except OSError:
                status = 0
            took = time.monotonic() - begun
            self.took.append(took if status == 200 else 10.0)
            self.peak = max(self.peak, resident(self.gateway))
            time.sleep(0.005)


def attack(consort):
    command = consort.server("bomb.py", SERVER)
    for file, names in [("honest.json", ["plain"]), ("agent.json", BOMBS)]:
        calls = [{"name": f"bomb.{name}", "arguments": ARGUMENTS} for name in names]
        consort.write(file, json.dumps({"turns": [{"calls": calls}, {"text": "done"}]}))
    config = consort.write("consort.toml", f"""
        [mcp.bomb]
        command = {json.dumps(command[0])}
        args = {json.dumps(command[1:])}
        validate = "refuse"

        [consort.agents.honest]
        model = "scripted:honest.json"

        [consort.agents.worker]
        model = "scripted:agent.json"
        """)
    for name, argument in [("plain", "day=2026-11"), ("letters", "m0=" + ARGUMENTS["m0"])]:
        try:
            ran = consort.run("--config", config, "call", f"bomb.{name}", argument, timeout=20)
        except subprocess.TimeoutExpired:
            raise AttackWorked(f"`{name}` takes longer than 20 s through the command line") from None
        if f"ran {name}" not in ran.stdout:
            raise RuntimeError(f"`{name}` failed through the command line: {ran.stdout}{ran.stderr}")
    wrong = consort.run("--config", config, "call", "bomb.plain", "day=today", timeout=20)
    if wrong.returncode == 0 or "day" not in wrong.stdout + wrong.stderr:
        raise RuntimeError(f"arguments are not checked at all: {wrong.stdout}{wrong.stderr}")

    gateway = consort.serve(config)
    client = gateway.client()
    for _ in range(200):
        if "ask_worker" in (tools := client.tools()) and "letters" in tools:
            break
        time.sleep(0.05)
    # What a first run of an agent makes ready once is no part of the attack.
    client.call("ask_honest", {"query": "go"}, timeout=30)
    before = resident(gateway)
    health = Health(gateway)
    health.start()
    for _ in range(2):
        asked = client.call("ask_worker", {"query": "go"}, timeout=30)
        if "done" not in json.dumps(asked):
            raise RuntimeError(f"the agent did not get through: {json.dumps(asked)[:2000]}")
    for name in BOMBS:
        called = client.call(name, ARGUMENTS, timeout=30)
        if f"ran {name}" not in json.dumps(called):
            raise RuntimeError(f"`{name}` did not run: {json.dumps(called)[:500]}")
    health.over.set()
    health.join(15)
    median, worst, grown = statistics.median(health.took), max(health.took), health.peak - before
    print(f"      S4: /healthz median {median * 1000:.1f} ms, worst {worst * 1000:.0f} ms of {len(health.took)}; "
          f"memory grew by {grown >> 20} MiB")
    if median > MEDIAN or worst > WORST:
        raise AttackWorked(f"/healthz took {median * 1000:.0f} ms in the median and {worst * 1000:.0f} ms at worst")
    if grown > MEMORY:
        raise AttackWorked(f"the memory of the gateway grew by {grown >> 20} MiB")
