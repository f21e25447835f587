"""A misspelt `policy` section, or another slip in `[consort]`, leaves everything allowed."""

import json

from hostile import AttackWorked

SERVER = "[mcp.demo]\ncommand = [{binary}, \"demo-server\"]\n"
SOUND = "[consort.policy]\ndefault = \"deny\"\n"
SLIPS = [
    "[consort.polcy]\ndefault = \"deny\"\n",
    "[conosrt.policy]\ndefault = \"deny\"\n",
    "[consort.policy]\ndefualt = \"deny\"\n",
    "[consort.policy]\ndefault = \"dney\"\n",
    "[consort.policy]\ndefault = 2026-01-01\n",
    "[consort.policy]\nrules = [{ tool = [\"*\"], then = \"deny\" }]\n",
    "[consort.profiles.p]\nservers = []\n",
    "[consort.tokens]\nci = \"file:no-such-file\"\n",
]


def attack(consort):
    server = SERVER.format(binary=json.dumps(consort.binary))
    sound = consort.write("sound.toml", server + SOUND)
    ran = consort.run("--config", sound, "check")
    assert ran.returncode == 0, ran.stderr
    gateway = consort.serve(sound, "--no-ledger")
    assert gateway.client().tools() == [], "the policy is not in force"
    for slip in SLIPS:
        config = consort.write("slip.toml", server + slip)
        if consort.run("--config", config, "check").returncode == 0:
            raise AttackWorked(f"`check` finds nothing wrong with {slip!r}")
        try:
            served = consort.serve(config, "--no-ledger")
        except RuntimeError:
            continue
        raise AttackWorked(f"{slip!r} is served: {served.client().tools()}")
    for document in [
        {"mcpServers": {}, "consort": {"polcy": {"default": "deny"}}},
        {"mcpServers": {}, "consrot": {"policy": {"default": "deny"}}},
        {"mcpServers": {}, "consort": {"policy": {"default": "deny"}, "Policy": {}}},
    ]:
        config = consort.write("slip.json", json.dumps(document))
        if consort.run("--config", config, "tools").returncode == 0:
            raise AttackWorked(f"tools are listed under {document}")
