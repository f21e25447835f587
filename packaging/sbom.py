"""Software bill of materials of the binary, as CycloneDX JSON: every crate that is linked into it.

    scripts/sbom [TARGET] > consort.cdx.json

Crates that only build scripts, tests or derive macros use are no part of the binary and are left out.
"""

import datetime
import json
import subprocess
import sys
import tomllib
import uuid

sys.dont_write_bytecode = True

import release


def cargo_metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=release.ROOT).stdout)


def host():
    lines = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def linked_packages(target):
    """Returns name and version of every linked package.

    `cargo metadata` enables the features that all of the workspace asks for; `cargo tree` those of the binary.
    """
    command = ["cargo", "tree", "--locked", "--package", "consort", "--edges", "normal,no-proc-macro"]
    command += ["--target", target, "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=release.ROOT).stdout.splitlines()
    words = [line.split() for line in lines if line]
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def linked(target):
    """Returns the id of the binary's package, the ids of its linked packages with their dependencies, all packages."""
    metadata, names = cargo_metadata(target), linked_packages(target)
    packages = {package["id"]: package for package in metadata["packages"]}
    keys = {key for key, package in packages.items() if (package["name"], package["version"]) in names}
    root = next(key for key in keys if packages[key]["name"] == "consort")
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    dependencies = {
        key: {
            dependency["pkg"]
            for dependency in nodes[key]["deps"]
            if dependency["pkg"] in keys and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        }
        for key in keys
    }
    return root, dependencies, packages


def checksums():
    """Returns the SHA-256 of the source archive of every package, by name and version."""
    lock = tomllib.loads((release.ROOT / "Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind, checksum):
    described = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["description"]:
        described["description"] = " ".join(package["description"].split())
    if package["license"]:
        # Older crates separate alternatives with a slash.
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def bill(target):
    root, found, packages = linked(target)
    sums = checksums()

    def describe(key, kind):
        package = packages[key]
        return component(package, kind, sums[package["name"], package["version"]])

    order = sorted(found, key=lambda key: reference(packages[key]))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(release.EPOCH, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": describe(root, "application"),
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": [describe(key, "library") for key in order if key != root],
        "dependencies": [
            {
                "ref": reference(packages[key]),
                "dependsOn": sorted(reference(packages[dependency]) for dependency in found[key]),
            }
            for key in order
        ],
    }
    # Equal contents have an equal number.
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return {"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "serialNumber": f"urn:uuid:{number}"} | document


if __name__ == "__main__":
    if len(sys.argv) > 2:
        raise SystemExit("usage: scripts/sbom [TARGET]")
    print(json.dumps(bill(sys.argv[1] if len(sys.argv) == 2 else host()), indent=2))
