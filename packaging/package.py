"""Makes every package of one binary: `scripts/package BINARY OUT_DIR` calls it."""

import pathlib
import sys

# A cache of the compiled modules would be left in the sources.
sys.dont_write_bytecode = True

import deb
import npm
import wheel
from executable import UnsupportedBinary, read_platform


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: scripts/package BINARY OUT_DIR")
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    try:
        platform = read_platform(binary)
    except (UnsupportedBinary, OSError) as error:
        raise SystemExit(f"package: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    made = [wheel.write_wheel(binary, platform, folder), *npm.write_npm(binary, platform, folder)]
    if platform.system == "linux":
        made.append(deb.write_deb(binary, platform, folder))
    for path in made:
        print(path)


main()
