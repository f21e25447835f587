"""A server leaves daemons behind: double fork, a session of their own, no environment, SIGTERM ignored.

They must be gone after a clean command, and after SIGKILL of the program, of either keeper process, and of two
of these three at once. A server below `npm exec` ends the same way.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import time

from hostile import AttackWorked, wait_for

LIMIT = 2.0  # seconds within which nothing may be left

SERVER = """
import json, os, signal, sys

MARK = sys.argv[1]

def daemon(environment):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.closerange(3, 64)
    os.execve(sys.executable, [sys.executable, "-Sc", "import time; time.sleep(600)", MARK], environment)

daemon(os.environ)
daemon({})

tool = {"name": "hello", "inputSchema": {"type": "object"}}
answers = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "daemons", "version": "1"}},
    "tools/list": {"tools": [tool]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        method = message["method"]
        if method in answers:
            answer["result"] = answers[method]
        else:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        print(json.dumps(answer), flush=True)
"""


def processes():
    """Every process that runs: its id, its parent and its command line."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state, parent = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[:2]
                line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if state not in "ZX":
                found[int(entry)] = (int(parent), line)
    return found


def below(root):
    """The processes below one, and their command lines."""
    table, found, size = processes(), {root}, 0
    while len(found) != size:
        size = len(found)
        found |= {pid for pid, (parent, _) in table.items() if parent in found}
    return {pid: table[pid][1] for pid in found - {root} if pid in table}


def marked(mark):
    return {pid for pid, (_, line) in processes().items() if mark in " ".join(line)}


def write_config(consort, name, mark, launcher):
    """A config with the server, and with another that `npm exec` starts."""
    servers = {"daemons": dict(zip(("command", "args"), (launcher[0], [*launcher[1:], mark])))}
    npm = pathlib.Path(launcher[0]).parents[2] / "npm"
    if shutil.which("npm") and name in ("consort", "starter"):
        arguments = ["exec", "--offline", "--prefix", str(npm), "--", "mcp-server-everything", "stdio", mark]
        servers["npm"] = {"command": "npm", "args": arguments}
    return consort.write(f"{name}.json", json.dumps({"mcpServers": servers})), len(servers)


def gone(pids, what):
    begun = time.monotonic()
    while left := {pid for pid in pids if pid in processes()}:
        if time.monotonic() - begun > LIMIT:
            lines = [" ".join(line) for pid, (_, line) in processes().items() if pid in left]
            raise AttackWorked(f"{what}: left behind after {LIMIT:g} s: {lines}")
        time.sleep(0.02)


def clean(consort, launcher):
    """A command that ends well leaves nothing."""
    mark = f"clean-{os.getpid()}-daemons"
    config, _ = write_config(consort, "clean", mark, launcher)
    ran = consort.run("--config", config, "call", "daemons.hello")
    if ran.returncode or "hello" not in ran.stdout:
        raise RuntimeError(f"the honest call failed: {ran.stdout} {ran.stderr}")
    gone(marked(mark), "a clean command")


def killed(consort, launcher, victims):
    """SIGKILL of the victims, all at once, while the server and its daemons run."""
    name = "-".join(victims)
    mark = f"kill-{name}-{os.getpid()}-daemons"
    config, servers = write_config(consort, name, mark, launcher)
    gateway = consort.serve(config, "--no-ledger")
    answer = gateway.client().call("daemons_hello" if "daemons_hello" in gateway.client().tools() else "hello", {})
    if "hello" not in json.dumps(answer.get("result")):
        raise RuntimeError(f"the honest call failed: {answer} {gateway.log()}")
    # The server, its two daemons, and what `npm exec` starts: npm, a shell or none, node.
    least = 3 if servers == 1 else 5
    wait_for(lambda: len(marked(mark)) >= least, what=f"{least} processes")
    before = marked(mark)
    ids = {"consort": gateway.process.pid}
    for pid, line in below(gateway.process.pid).items():
        if line[1:2] == ["keeper"]:
            ids["starter" if "starter" in line else "guard"] = pid
    if len(ids) != 3:
        raise AttackWorked(f"no keeper: {ids}; SIGKILL of a watchdog leaves {len(before)} processes")
    for victim in victims:
        # The first death may already have ended the second.
        with contextlib.suppress(ProcessLookupError):
            os.kill(ids[victim], signal.SIGKILL)
    gone(before, f"SIGKILL of {name}")
    if "consort" not in victims:
        # A gateway that lives starts a new keeper, and with it the server.
        def answered():
            return "hello" in json.dumps(gateway.client().call("hello", {}).get("result"))
        wait_for(answered, what="the server to be back")


def attack(consort):
    launcher = consort.server("daemons.py", SERVER)
    plans = [
        ("consort",), ("guard",), ("starter",),
        ("guard", "consort"), ("starter", "consort"), ("guard", "starter"), ("consort", "guard"),
    ]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(clean, consort, launcher)]
        tasks += [pool.submit(killed, consort, launcher, plan) for plan in plans]
        concurrent.futures.wait(tasks)
    for pid in marked(f"-{os.getpid()}-daemons"):
        # One that ends by itself between the look and the signal is what is wanted.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for task in tasks:
        task.result()
