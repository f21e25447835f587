"""Facts that every package of a release repeats: version, license, description, time of the build."""

import os
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The names `consort` of PyPI and npm belong to other projects. The command is `consort` everywhere.
PACKAGE = "consort-mcp"

DESCRIPTION = (
    "Consort connects to all your MCP servers and exposes them as one: as one\n"
    "endpoint for any MCP client, to agents with any model, and on the command line."
)

# Without SOURCE_DATE_EPOCH, files of a package carry the first day of the year 2000: two builds are equal.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or 946684800)

# Tests make packages quickly rather than small.
COMPRESSION = 1 if os.environ.get("PACKAGE_COMPRESSION") == "fast" else 9


def workspace():
    """Returns the table `[workspace.package]`: version, license, oldest Rust."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def summary():
    """Returns the one-line description of the program."""
    return tomllib.loads((ROOT / "crates/consort/Cargo.toml").read_text())["package"]["description"]


def version():
    """Returns the version of the workspace, as `(numbers, pre-release kind or None, pre-release number)`."""
    text = workspace()["version"]
    parts = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?", text)
    if parts is None:
        raise SystemExit(f"package: version `{text}` of Cargo.toml: use `1.2.3`, or `1.2.3-rc.1` (alpha, beta, rc)")
    return parts.groups()


def python_version():
    """Returns the version in the form of PyPI: `1.2.3rc1`."""
    numbers, kind, number = version()
    return numbers + ({"alpha": "a", "beta": "b", "rc": "rc"}[kind] + number if kind else "")


def npm_version():
    """Returns the version in the form of npm, that of Cargo."""
    return workspace()["version"]


def debian_version():
    """Returns the version in the form of Debian, in which `~` sorts before the release."""
    return workspace()["version"].replace("-", "~")
