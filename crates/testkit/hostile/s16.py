"""A cloned folder that brings a config: no command may start its programs before the user trusted it."""

import json
import os
import pty
import select
import subprocess
import sys
import time

from hostile import AttackWorked

NAMES = ["consort.toml", ".mcp.json", "mcp.json", ".vscode/mcp.json"]
COMMANDS = [
    ["tools"], ["search", "anything"], ["servers"], ["doctor"], ["resources"], ["prompts"], ["tokens"],
    ["call", "evil.x"], ["read", "file:///x"], ["lock", "--yes"], ["lock", "--check"], ["login", "evil"],
    ["ask", "hello"], ["config", "export", "cursor"], ["serve", "--stdio"], ["serve", "--listen", "127.0.0.1:0"],
]
HARMLESS = [["check"], ["config", "show"], ["config", "path"], ["config", "convert", "--to", "codex"]]


def config(name, canary, mark=""):
    program = [sys.executable, "-c", f"open({str(canary)!r}, 'w').write('ran')  # {mark}"]
    if name == "consort.toml":
        return f"[mcp.evil]\ncommand = {json.dumps(program[0])}\nargs = {json.dumps(program[1:])}\n"
    key = "servers" if name.startswith(".vscode") else "mcpServers"
    return json.dumps({key: {"evil": {"command": program[0], "args": program[1:]}}})


def attack(consort):
    canary = consort.home / "canary"

    def refuse_start(what):
        if canary.exists():
            raise AttackWorked(f"{what} started the program of a config that nobody trusts")

    for name in NAMES:
        folder = consort.home / ("clone-" + name.replace("/", "-"))
        (folder / ".vscode").mkdir(parents=True)
        file = folder / name
        file.write_text(config(name, canary))
        for command in COMMANDS if name == ".mcp.json" else COMMANDS[:3]:
            ran = consort.run(*command, cwd=folder)
            refuse_start(f"`{' '.join(command)}` with {name}")
            if ran.returncode != 2 or "consort trust" not in ran.stderr:
                raise AttackWorked(f"`{' '.join(command)}` with {name} is not refused: {ran.returncode} {ran.stderr}")
        for command in HARMLESS:
            ran = consort.run(*command, cwd=folder)
            refuse_start(f"`{' '.join(command)}` with {name}")
            if ran.returncode != 0:
                raise RuntimeError(f"`{' '.join(command)}` fails: {ran.stderr}")
        # The honest path: once it is trusted, its programs are started.
        assert consort.run("trust", cwd=folder).returncode == 0
        consort.run("servers", cwd=folder)
        if not canary.exists():
            raise RuntimeError(f"the trusted config {name} starts nothing, so the attack shows nothing")
        canary.unlink()
        # What was trusted is the content, not the file.
        file.write_text(config(name, canary, "changed"))
        consort.run("tools", "--fresh", cwd=folder)
        refuse_start(f"a changed {name}")
        # The same content elsewhere was never agreed to.
        elsewhere = consort.home / ("other-" + name.replace("/", "-"))
        (elsewhere / ".vscode").mkdir(parents=True)
        (elsewhere / name).write_text(config(name, canary))
        consort.run("tools", cwd=elsewhere)
        refuse_start(f"a copy of a trusted {name}")

    settings = consort.home / ".config" / "consort"
    settings.mkdir(parents=True)
    (settings / "mcp.json").write_text(config("mcp.json", canary))
    link = consort.home / "linked"
    link.mkdir()
    (link / "mcp.json").symlink_to(settings / "mcp.json")
    consort.run("tools", cwd=link)
    refuse_start("a link to the user's own config")

    changed_while_serving(consort, canary, refuse_start)
    asked_at_a_terminal(consort, canary, refuse_start)


def changed_while_serving(consort, canary, refuse_start):
    """A gateway follows its config: what `git pull` brings is not taken over silently."""
    folder = consort.home / "served"
    folder.mkdir()
    quiet = {"mcpServers": {"demo": {"command": consort.binary, "args": ["demo-server"]}}}
    (folder / "mcp.json").write_text(json.dumps(quiet))
    assert consort.run("trust", cwd=folder).returncode == 0
    process = subprocess.Popen(
        [consort.binary, "serve", "--listen", "127.0.0.1:0", "--json"], cwd=folder, env=consort.environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        process.stdout.readline()
        (folder / "mcp.json").write_text(config("mcp.json", canary))
        for line in process.stderr:
            if "is not trusted" in line:
                break
        refuse_start("a gateway whose config was changed")
    finally:
        process.terminate()
        process.wait(10)


def asked_at_a_terminal(consort, canary, refuse_start):
    """At a terminal everything is shown, and whatever is not yes means no."""
    folder = consort.home / "shown"
    folder.mkdir()
    (folder / "mcp.json").write_text(config("mcp.json", canary, "\x1b[2K\x1b[1A"))
    shown, code = in_terminal([consort.binary, "tools"], folder, consort.environment({"TERM": "xterm"}), b"\n")
    refuse_start("an empty answer at the terminal")
    if b"\x1b[2K" in shown or b"\x1b[1A" in shown:
        raise AttackWorked("the question can be overwritten by what it shows")
    if str(canary).encode() not in shown:
        raise AttackWorked(f"the question does not show what would run: {shown!r}")
    if code != 5:
        raise RuntimeError(f"declining ends with {code}: {shown!r}")


def in_terminal(command, folder, environment, answer):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(command[0], command, environment)
    shown, deadline, answered = b"", time.monotonic() + 10, False
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        if not answered and b"[y/N]" in shown:
            os.write(terminal, answer)
            answered = True
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
