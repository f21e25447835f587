"""A stdio server that two identities share crashes, and its standard error must not reach the other one."""

import re
import secrets

from hostile import AttackWorked, wait_for

# FastMCP writes tracebacks and whatever tools print to its standard error.
SERVER = """
    import os
    import sys

    from fastmcp import FastMCP

    mcp = FastMCP("ledgerbook")


    @mcp.tool
    def note(text: str) -> str:
        \"\"\"Keeps a note, and says so on the standard error as careless servers do.\"\"\"
        print(f"note: {text}", file=sys.stderr, flush=True)
        return "kept"


    @mcp.tool
    def crash() -> str:
        \"\"\"Ends the process in the middle of the call.\"\"\"
        os._exit(9)


    mcp.run(show_banner=False)
"""

CONFIG = """
    [mcp.book]
    command = "{command}"
    args = ["{script}"]

    [consort.tokens]
    ada = "file:{ada}"
    bob = "file:{bob}"
"""


def attack(consort):
    secret = f"ada-{secrets.token_hex(12)}"
    tokens = {name: secrets.token_hex(20) for name in ("ada", "bob")}
    command, script = consort.server("book.py", SERVER)
    files = {name: consort.write(f"{name}.token", token, 0o600) for name, token in tokens.items()}
    config = consort.write("consort.toml", CONFIG.format(command=command, script=script, **files))
    gateway = consort.serve(config)
    ada, bob = gateway.client(tokens["ada"]), gateway.client(tokens["bob"])
    wait_for(lambda: "note" in ada.tools(), 30, "the server's tools")

    # The honest path: ada's call is answered, and her argument is on the shared process's standard error.
    kept = ada.call("note", {"text": secret})
    if kept["result"].get("isError") or "kept" not in str(kept["result"]["content"]):
        raise RuntimeError(f"the honest call failed: {kept}")
    wait_for(lambda: secret in stderr_for_owner(gateway), what="the server's standard error on the console")

    # The attack: bob crashes the process he shares with ada, and looks wherever he may.
    answers = [bob.call("crash", {})]
    result = answers[0].get("result", {})
    if not result.get("isError") or result["_meta"]["consort/call"]["class"] != "outcome_unknown":
        raise RuntimeError(f"the call did not crash the server: {answers[0]}")
    answers.append(bob.tools())
    status, _, metrics = gateway.request("GET", "/metrics", token=tokens["bob"])
    answers.append((status, metrics))
    for answer in answers:
        if secret in str(answer):
            raise AttackWorked(f"bob reads what ada wrote: {answer}")
    for path in ("/api/servers", "/api/servers/book", "/api/calls", "/healthz", "/readyz"):
        status, _, body = gateway.request("GET", path, token=tokens["bob"])
        if secret in body:
            raise AttackWorked(f"bob reads what ada wrote at {path}: {body}")

    # He learns the exit status and an id, which the operator finds in the log; what ada wrote is not there by default.
    text = result["content"][0]["text"]
    incident = re.search(r"incident ([0-9a-f]+)", text)
    if "exit status: 9" not in text or not incident:
        raise RuntimeError(f"neither exit status nor incident: {text}")
    wait_for(lambda: incident[1] in gateway.log(), what=f"incident {incident[1]} in the log")
    if secret in gateway.log():
        raise AttackWorked("what ada wrote is in the log at its default level")
    shown = stderr_for_owner(gateway)
    if secret not in shown or incident[1] not in shown:
        raise RuntimeError(f"the owner does not find the incident: {shown}")


def stderr_for_owner(gateway):
    """Returns what the console shows the owner of the server's standard error."""
    status, _, body = gateway.request("GET", "/api/servers/book")
    if status != 200:
        raise RuntimeError(f"the console says {status}: {body}")
    return body
