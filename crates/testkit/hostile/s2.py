"""A client names a denied tool as `Name` beside an allowed `name`, for servers that ignore the case of members.

The servers are written in Go: `mcp-grafana` 1.3.0 and a small one on `encoding/json`. Tried over HTTP, over standard
input and output, and with arguments (`Path` beside `path`) that a policy judges.
"""

import json
import pathlib
import subprocess
import sys

from hostile import AttackWorked, wait_for

FIXTURES = pathlib.Path(sys.executable).absolute().parents[2]
GO = FIXTURES / "go_server"
GRAFANA = FIXTURES / "mcp_grafana/1.3.0/mcp_grafana/bin/mcp-grafana"
HARMLESS = "suggest_loki_alloy_label_config"

CONFIG = f"""
[mcp.go]
command = "{GO}"
[mcp.grafana]
command = "{GRAFANA}"
env.GRAFANA_URL = "http://127.0.0.1:9"
[[consort.policy.rules]]
tools = ["go.delete_all", "grafana.update_dashboard"]
then = "deny"
[[consort.policy.rules]]
when = {{ path = "path", under = "/etc", missing = false }}
then = "deny"
[[consort.policy.rules]]
when = {{ path = "risk", equals = "high", missing = false }}
then = "deny"
"""

# The members of `params` beside `_meta`, and what the answer holds if a server was fooled.
ATTACKS = [
    ('"name":"read","arguments":{},"Name":"delete_all"', "delete_all path"),
    ('"name":"read","arguments":{},"NAME":"delete_all"', "delete_all path"),
    ('"name":"read","arguments":{"path":"/tmp/a"},"Arguments":{"path":"/etc/x"}', "path=/etc/x"),
    ('"name":"read","arguments":{"path":"/tmp/a"},"argument\u017f":{"path":"/etc/x"}', "path=/etc/x"),
    ('"name":"read","arguments":{"path":"/tmp/a"},"argument\\u017f":{"path":"/etc/x"}', "path=/etc/x"),
    ('"name":"read","arguments":{"path":"/tmp/a","Path":"/etc/x"}', "path=/etc/x"),
    ('"name":"read","arguments":{"Path":"/etc/x"}', "path=/etc/x"),
    ('"name":"read","arguments":{"risk":"low","ri\u017fk":"high"}', "risk=high"),
    ('"name":"read","arguments":{"ris\u212a":"high"}', "risk=high"),
    (f'"name":"{HARMLESS}","arguments":{{}},"Name":"update_dashboard"', "no dashboard content"),
    (f'"name":"{HARMLESS}","Arguments":{{}},"nAme":"update_dashboard"', "no dashboard content"),
]
HONEST = [('"name":"read","arguments":{"path":"/tmp/a"}', "read path=/tmp/a"), (f'"name":"{HARMLESS}","arguments":{{}}', "content")]


def directly():
    """Shows that the servers are fooled when nobody stands between."""
    for program, index in ((GO, 0), (GRAFANA, 9)):
        members, fooled = ATTACKS[index]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{' + members + "}}",
        ]
        with subprocess.Popen(
            [program], env={"GRAFANA_URL": "http://127.0.0.1:9"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        ) as server:
            server.stdin.write("\n".join(lines) + "\n")
            server.stdin.flush()
            answer = next(line for line in server.stdout if '"id":2' in line)
            server.stdin.close()
        assert fooled in answer, f"{program} is not fooled: {answer}"


def over_http(gateway):
    client = gateway.client()

    def call(members):
        params = "{" + members + ',"_meta":' + json.dumps(client.meta) + "}"
        body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + "}"
        name = members.split('"')[3]
        return json.dumps(client.post(body.encode(), "tools/call", name), ensure_ascii=False)

    for members, expected in HONEST:
        wait_for(lambda m=members, e=expected: e in call(m), what=f"the honest call {members}")
    for members, fooled in ATTACKS:
        said = call(members)
        if fooled in said:
            raise AttackWorked(f"over HTTP, {members}: {said}")
    for spelling in ('"Method":"tools/call","params":{', '"method":"tools/call","Params":{"name":"delete_all"},"params":{'):
        body = '{"jsonrpc":"2.0","id":1,' + spelling + '"name":"read","_meta":' + json.dumps(client.meta) + "}}"
        said = json.dumps(client.post(body.encode(), "tools/call", "read"))
        if "path=" in said:
            raise AttackWorked(f"an envelope in another spelling was taken: {said}")


def over_stdio(consort, config):
    with subprocess.Popen(
        [consort.binary, "--config", str(config), "serve", "--stdio"], env=consort.environment(), cwd=consort.folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as serving:
        def ask(number, method, params):
            message = f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{{params}}}}}'
            serving.stdin.write(message + "\n")
            serving.stdin.flush()
            return next(line for line in serving.stdout if f'"id":{number},' in line or f'"id":{number}}}' in line)

        ask(1, "initialize", '"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}')
        numbers = iter(range(2, 1000))
        wait_for(lambda: HONEST[0][1] in ask(next(numbers), "tools/call", HONEST[0][0]), what="the honest call")
        for members, fooled in ATTACKS:
            said = ask(next(numbers), "tools/call", members)
            if fooled in said:
                raise AttackWorked(f"over standard input, {members}: {said}")
        serving.stdin.close()


def attack(consort):
    directly()
    config = consort.write("consort.toml", CONFIG)
    over_http(consort.serve(config))
    over_stdio(consort, config)
    arguments = json.dumps({"path": "/tmp/a", "Path": "/etc/x"})
    ran = consort.run("--config", config, "call", "go.read", "--args", arguments)
    if "path=/etc/x" in ran.stdout:
        raise AttackWorked(f"`consort call` passed a denied path on: {ran.stdout}")
