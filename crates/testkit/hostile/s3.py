"""The console's cookie, as another port of the host receives it, replayed: it reads and changes nothing."""

import json

from hostile import AttackWorked

CONFIG = """
[mcp.honest]
command = ["true"]
disabled = true
"""

READS = ["/api/session", "/api/servers", "/api/events", "/api/calls", "/api/pending-requests", "/api/tools", "/api/openapi.json"]


def attack(consort):
    config = consort.write("consort.toml", CONFIG)
    gateway = consort.serve(config)
    own = f"http://{gateway.address}"
    foreign = f"http://{gateway.host}:{gateway.port + 1}"
    marker = consort.folder / "intruder"
    program = {"text": json.dumps({"intruder": {"command": "touch", "args": [str(marker)]}})}
    writes = [
        ("POST", "/api/servers", program),
        ("POST", "/api/servers/preview", program),
        ("POST", "/api/servers/honest/connect", {}),
        ("DELETE", "/api/servers/honest", None),
        ("DELETE", "/api/session", None),
    ]

    def ask(method, path, body, headers):
        return gateway.request(method, path, body, headers, token=None, timeout=10)[0]

    def sign_in():
        status, headers, text = gateway.request(
            "POST", "/api/session", {"token": gateway.token}, {"Origin": own}, token=None
        )
        if status != 200:
            raise RuntimeError(f"signing in: {status} {text}")
        cookie = {name.lower(): value for name, value in headers.items()}["set-cookie"].split(";")[0]
        return {"Cookie": cookie}, {"X-Consort-Session": json.loads(text)["page_secret"]}

    def refused(headers, what):
        for method, path, body in [("GET", path, None) for path in READS] + writes:
            status = ask(method, path, body, headers)
            if status not in (401, 403):
                raise AttackWorked(f"{what}: {method} {path} was answered {status}")

    cookie, secret = sign_in()
    page = {**cookie, **secret, "Origin": own}
    if ask("GET", "/api/servers", None, page) != 200 or ask("POST", "/api/servers/preview", program, page) != 200:
        raise RuntimeError("the page's own requests are refused")

    for origin in ({}, {"Origin": own}, {"Origin": foreign}, {"Origin": "null"}):
        refused({**cookie, **origin}, f"the cookie alone, with {origin or 'no origin'}")
    _, another = sign_in()
    refused({**cookie, **another, "Origin": own}, "the cookie with the secret of another session")
    for origin in ({}, {"Origin": foreign}, {"Origin": "null"}, {"Origin": own, "Sec-Fetch-Site": "same-site"}):
        for method, path, body in writes:
            if ask(method, path, body, {**cookie, **secret, **origin}) != 403:
                raise AttackWorked(f"{method} {path} with cookie and secret, but {origin or 'no origin'}")

    for token in ({}, {"token": "x" * 43}):
        if ask("POST", "/api/servers", {**program, **token}, page) != 403:
            raise AttackWorked(f"a program was added by a session that showed {token or 'no token'}")

    if ask("DELETE", "/api/session", None, page) != 204:
        raise RuntimeError("signing out was refused")
    refused(page, "a session that signed out")
    if marker.exists() or "intruder" in config.read_text():
        raise AttackWorked("the program is in the config")

    cookie, secret = sign_in()
    page = {**cookie, **secret, "Origin": own}
    status, _, text = gateway.request("POST", "/api/servers", {**program, "token": gateway.token}, page, token=None)
    if status != 200:
        raise RuntimeError(f"adding a server with the token: {status} {text}")
