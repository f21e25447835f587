"""A wheel with the binary as its script: pip puts it on the path as `consort`, and no Python runs it."""

import base64
import hashlib
import time
import zipfile

import release


def write_wheel(binary, platform, folder):
    """Writes the wheel for `platform` into `folder` and returns its path."""
    name, version = release.PACKAGE.replace("-", "_"), release.python_version()
    tag = f"py3-none-{platform.wheel}"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}-{version}.data/scripts/consort": (binary.read_bytes(), 0o755),
        f"{info}/METADATA": (metadata(version).encode(), 0o644),
        f"{info}/WHEEL": (wheel(tag).encode(), 0o644),
    }
    for license_file in ["LICENSE-APACHE", "LICENSE-MIT"]:
        files[f"{info}/licenses/{license_file}"] = ((release.ROOT / license_file).read_bytes(), 0o644)
    record = "".join(f"{path},{digest(data)},{len(data)}\n" for path, (data, _) in sorted(files.items()))
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)

    path = folder / f"{name}-{version}-{tag}.whl"
    # The format asks for the metadata last, so that it can be read without the rest.
    order = sorted(files, key=lambda file: (file.startswith(info), file))
    with zipfile.ZipFile(path, "w") as archive:
        for file in order:
            data, mode = files[file]
            entry = zipfile.ZipInfo(file, time.gmtime(max(release.EPOCH, 315532800))[:6])
            entry.create_system = 3  # Unix: the mode below counts.
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=release.COMPRESSION)
    return path


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(version):
    return (
        "Metadata-Version: 2.4\n"
        f"Name: {release.PACKAGE}\n"
        f"Version: {version}\n"
        f"Summary: {release.summary()}\n"
        f"License-Expression: {release.workspace()['license']}\n"
        "License-File: LICENSE-APACHE\n"
        "License-File: LICENSE-MIT\n"
        "Keywords: mcp,gateway,agent\n"
        "Classifier: Environment :: Console\n"
        "Classifier: Programming Language :: Rust\n"
        "Description-Content-Type: text/markdown\n"
        "\n"
        f"{release.DESCRIPTION}\n"
        "\n"
        "The command is `consort`. Without installing it: `uvx --from consort-mcp consort --help`.\n"
    )


def wheel(tag):
    return f"Wheel-Version: 1.0\nGenerator: consort\nRoot-Is-Purelib: false\nTag: {tag}\n"
