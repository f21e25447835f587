"""npm packages: `consort-mcp` with the command, and one package with the binary for each platform.

npm installs the platform package that fits, because the others name another `os`, `cpu` or `libc`.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import release

SCOPE = f"@{release.PACKAGE}"

# Platforms with a binary. The release workflow builds each of them.
PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"]


def write_npm(binary, platform, folder):
    """Writes the tarballs of the platform package and the main package into `folder` and returns their paths."""
    if platform.npm not in PLATFORMS:
        raise SystemExit(f"package: no npm package for {platform.npm}: add it to PLATFORMS in packaging/npm.py")
    with tempfile.TemporaryDirectory() as stage:
        stage = pathlib.Path(stage)
        fill_platform(stage / "platform", binary, platform)
        fill_main(stage / "main")
        return [pack(stage / "platform", folder), pack(stage / "main", folder)]


def fill_platform(stage, binary, platform):
    system, processor = platform.npm.split("-")
    manifest = common(f"{SCOPE}/{platform.npm}", f"{release.summary()} (binary for {platform.npm})")
    manifest |= {"os": [system], "cpu": [processor]}
    if platform.system == "linux":
        manifest["libc"] = ["glibc"]
    # Yarn must not keep it in its archive: a program inside of one cannot be started.
    manifest |= {"preferUnplugged": True, "files": ["bin", "LICENSE-*"]}
    fill(stage, manifest, f"The binary of `{release.PACKAGE}` for {platform.npm}. Install `{release.PACKAGE}` instead.\n")
    copy(binary, stage / "bin" / "consort", 0o755)


def fill_main(stage):
    manifest = common(release.PACKAGE, release.summary())
    manifest |= {
        "bin": {"consort": "bin/consort.js"},
        "files": ["bin", "LICENSE-*"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {f"{SCOPE}/{name}": release.npm_version() for name in PLATFORMS},
    }
    usage = f"The command is `consort`. Without installing it: `npx {release.PACKAGE} --help`.\n"
    fill(stage, manifest, f"{release.DESCRIPTION}\n\n{usage}")
    copy(release.ROOT / "packaging/npm/consort.js", stage / "bin/consort.js", 0o755)


def common(name, description):
    return {
        "name": name,
        "version": release.npm_version(),
        "description": description,
        "license": f"({release.workspace()['license']})",
        "keywords": ["mcp", "gateway", "agent"],
    }


def fill(stage, manifest, readme):
    stage.mkdir()
    texts = {"package.json": json.dumps(manifest, indent=2) + "\n", "README.md": f"# {manifest['name']}\n\n{readme}"}
    for name, text in texts.items():
        (stage / name).write_text(text)
        (stage / name).chmod(0o644)
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        copy(release.ROOT / name, stage / name, 0o644)


def copy(source, target, mode):
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def pack(stage, folder):
    """Packs a folder; npm sorts the entries and gives all the same time."""
    command = ["npm", "pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", os.fspath(folder)]
    # It asks the network for nothing, not even for a newer npm.
    command += ["--offline", "--no-update-notifier"]
    packed = subprocess.run(command, cwd=stage, check=True, capture_output=True, text=True)
    manifest = json.loads((stage / "package.json").read_text())
    name = manifest["name"].removeprefix("@").replace("/", "-")
    path = folder / f"{name}-{manifest['version']}.tgz"
    if not path.is_file():
        raise SystemExit(f"package: npm wrote no {path.name}: {packed.stdout}{packed.stderr}")
    return path
