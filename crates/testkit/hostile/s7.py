"""A config that is being written, or that lost its policy, opens what was denied."""

import json
import threading
import time

from hostile import AttackWorked, wait_for

POLICY = "[consort.policy]\n[[consort.policy.rules]]\ntools = [\"get_weather\"]\nthen = \"deny\"\n"


def server(consort, name):
    return f"[mcp.{name}]\ncommand = [{json.dumps(consort.binary)}, \"demo-server\"]\n"


def attack(consort):
    one = server(consort, "one")
    config = consort.write("consort.toml", one + POLICY)
    gateway = consort.serve(config, "--no-ledger")
    client = gateway.client()
    wait_for(lambda: "search" in client.tools(), what="the allowed tools")
    ran = []

    def denied():
        answer = client.call("get_weather", {"location": "Rome"})
        if "result" in answer and not answer["result"].get("isError"):
            ran.append(answer)

    denied()
    assert not ran, "the honest policy does not deny"
    ended = threading.Event()

    def hammer():
        while not ended.is_set():
            denied()

    hammering = threading.Thread(target=hammer)
    hammering.start()
    try:
        # Piece by piece, the policy last.
        with open(config, "w") as file:
            for line in (one + server(consort, "two") + POLICY).splitlines(keepends=True):
                file.write(line)
                file.flush()
                time.sleep(0.4)
        wait_for(lambda: len(client.tools()) > 5, what="the whole config")
        # Half of it, for good; nothing; a symbolic link to one without the policy.
        for text in (one, "", "# soon\n", one + "[consort.policy]\n", one + "[consort.pol"):
            config.write_text(text)
            time.sleep(1.3)
        other = consort.write("other.toml", one)
        draft = config.with_name("draft")
        draft.symlink_to(other)
        draft.rename(config)
        time.sleep(1.3)
    finally:
        ended.set()
        hammering.join(30)
    if ran:
        raise AttackWorked(f"the denied tool ran {len(ran)} times")
    kept = json.loads(gateway.request("GET", "/api/reload")[2])["rejected"]
    if not kept or "the previous config stays in effect" not in gateway.log():
        raise AttackWorked("nobody is told that the config is kept out")
    refused = consort.run("--config", config, "reload")
    if refused.returncode != 2:
        raise AttackWorked(f"a reload without consent takes it: {refused}")
    accepted = consort.run("--config", config, "reload", "--accept")
    assert accepted.returncode == 0, accepted
    wait_for(lambda: "get_weather" in client.tools(), what="the config that was accepted")
