"""A Debian package with the binary, its manual and completions, systemd units and a config file.

Manual and completions are printed by the binary itself, so it is made on a machine that runs the binary.
"""

import email.utils
import gzip
import os
import pathlib
import subprocess
import tempfile

import release

MAINTAINER = "The Consort developers <consort@localhost>"

# dpkg asks before it replaces a changed one.
CONFFILES = {"etc/consort/mcp.json": b'{\n  "mcpServers": {}\n}\n'}

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/consort",
    "zsh": "usr/share/zsh/vendor-completions/_consort",
    "fish": "usr/share/fish/vendor_completions.d/consort.fish",
}

# The service is installed, not started: it needs a config first.
SCRIPTS = {
    "postinst": """#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl --system daemon-reload || true; fi
""",
    "prerm": """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl stop consort.service || true; fi
""",
    "postrm": """#!/bin/sh
set -e
if [ "$1" = purge ]; then
  for folder in lib/private lib cache/private cache; do rm -rf "$DPKG_ROOT/var/$folder/consort"; done
fi
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl --system daemon-reload || true; fi
""",
}


def write_deb(binary, platform, folder):
    """Writes the package into `folder` and returns its path."""
    version = release.debian_version()
    path = folder / f"consort_{version}_{platform.debian}.deb"
    with tempfile.TemporaryDirectory() as stage:
        stage = pathlib.Path(stage)
        stage.chmod(0o755)
        fill(stage, binary)
        put(stage, "DEBIAN/control", control(stage, platform, version).encode())
        put(stage, "DEBIAN/conffiles", "".join(f"/{name}\n" for name in sorted(CONFFILES)).encode())
        for name, script in SCRIPTS.items():
            put(stage, f"DEBIAN/{name}", script.encode(), 0o755)
        for name in stage.rglob("*"):
            # Folders are made with the user's umask, and it must not be in the package.
            if name.is_dir():
                name.chmod(0o755)
        command = ["dpkg-deb", "--root-owner-group", f"-z{release.COMPRESSION}", "--build"]
        command += [os.fspath(stage), os.fspath(path)]
        # It gives no file a later time than this.
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(release.EPOCH)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return path


def fill(stage, binary):
    put(stage, "usr/bin/consort", binary.read_bytes(), 0o755)
    with tempfile.TemporaryDirectory() as pages:
        subprocess.run([binary, "man", pages], check=True, stdout=subprocess.DEVNULL)
        for page in pathlib.Path(pages).iterdir():
            put(stage, f"usr/share/man/man1/{page.name}.gz", gzip.compress(page.read_bytes(), mtime=0))
    for shell, name in COMPLETIONS.items():
        script = subprocess.run([binary, "completions", shell], check=True, capture_output=True).stdout
        put(stage, name, script)
    for name, data in CONFFILES.items():
        put(stage, name, data)
    packaging = release.ROOT / "packaging"
    put(stage, "usr/lib/systemd/system/consort.service", (packaging / "consort.service").read_bytes())
    put(stage, "usr/lib/systemd/user/consort.service", (packaging / "consort-user.service").read_bytes())
    put(stage, "usr/share/doc/consort/copyright", (packaging / "copyright").read_bytes())
    put(stage, "usr/share/doc/consort/changelog.gz", gzip.compress(changelog().encode(), mtime=0))
    changes = gzip.compress((release.ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    put(stage, "usr/share/doc/consort/CHANGELOG.md.gz", changes)
    for name in ["README.md", "LICENSE-MIT"]:
        put(stage, f"usr/share/doc/consort/{name}", (release.ROOT / name).read_bytes())


def changelog():
    """Returns the changelog in Debian's format, which names the project's own."""
    return (
        f"consort ({release.debian_version()}) unstable; urgency=medium\n"
        "\n"
        "  * Changes are in CHANGELOG.md.gz, in this folder.\n"
        "\n"
        f" -- {MAINTAINER}  {email.utils.formatdate(release.EPOCH)}\n"
    )


def put(stage, name, data, mode=0o644):
    path = stage / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def control(stage, platform, version):
    files = [path for path in stage.rglob("*") if path.is_file()]
    kibibytes = sum(-(-path.stat().st_size // 1024) for path in files)
    major, minor = platform.version
    description = "".join(f" {line}\n" for line in release.DESCRIPTION.splitlines())
    return (
        "Package: consort\n"
        f"Version: {version}\n"
        f"Architecture: {platform.debian}\n"
        f"Maintainer: {MAINTAINER}\n"
        "Section: net\n"
        "Priority: optional\n"
        f"Installed-Size: {kibibytes}\n"
        f"Depends: libc6 (>= {major}.{minor}), libgcc-s1\n"
        "Recommends: ca-certificates\n"
        f"Description: {release.summary()[0].lower()}{release.summary()[1:]}\n"
        f"{description}"
    )
