"""Plays each attack in this folder against a built `consort` and fails if one of them works.

An attack is a file named after its finding (`s1.py`, `o1.py`) with a docstring that says in one line what is
attacked, and a function `attack(consort)`. The function raises `AttackWorked` when the attack has an effect, and
any other exception when the attack could not be played: both fail the run. It must also show that its
set-up works (the honest call succeeds), so that an attack that never took place does not pass.
"""

import argparse
import concurrent.futures
import importlib.util
import pathlib
import sys
import tempfile
import time
import traceback

from hostile import AttackWorked, Consort

FOLDER = pathlib.Path(__file__).parent
HARNESS = {"run", "hostile"}


def load(path):
    spec = importlib.util.spec_from_file_location(f"attack_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(path, binary):
    begun = time.monotonic()
    module = load(path)
    title = module.__doc__.strip().splitlines()[0]
    with tempfile.TemporaryDirectory(prefix=f"hostile-{path.stem}-") as home:
        consort = Consort(binary, pathlib.Path(home))
        try:
            module.attack(consort)
            verdict, detail = "held", ""
        except AttackWorked as worked:
            verdict, detail = "WORKED", str(worked)
        except Exception:
            verdict, detail = "NOT PLAYED", traceback.format_exc()
        finally:
            consort.close()
    return path.stem.upper(), title, verdict, detail, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("ids", nargs="*", help="play only these, as in `s1 o2`")
    options = parser.parse_args()
    paths = sorted(path for path in FOLDER.glob("*.py") if path.stem not in HARNESS)
    if options.ids:
        wanted = {name.lower() for name in options.ids}
        missing = wanted - {path.stem for path in paths}
        if missing:
            sys.exit(f"hostile: unknown attack: {', '.join(sorted(missing))}")
        paths = [path for path in paths if path.stem in wanted]
    binary = options.binary.resolve()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, title, verdict, detail, seconds in pool.map(lambda path: play(path, binary), paths):
            print(f"{name:5} {verdict:10} {seconds:5.1f}s  {title}", flush=True)
            if verdict != "held":
                failed += 1
                print("      " + detail.strip().replace("\n", "\n      "), flush=True)
    print(f"\nhostile: {len(paths) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
