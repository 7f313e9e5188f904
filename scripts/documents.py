"""Whether a change of the engine changes an answer: documents of the library's runs, kept at one commit and compared at another.

usage: python scripts/documents.py keep FOLDER        (in the older checkout, or with PYTHONPATH set to it)
       python scripts/documents.py compare FOLDER     (in the newer one; exit code 1 if a byte differs)

Of every workload of the library that names its machine: `simulate --json --ops` and `explain --json`. HWSIM_FAST=always has
compiled code play them.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from hwsim.cli import main
from hwsim.spec import find, names, read

COMMANDS = {"result": ("simulate", "--json", "--ops", "--no-expect"), "explain": ("explain", "--json")}


def documents() -> Iterator[tuple[str, bytes]]:
    """(name, exit code and what is printed) of every document."""
    for workload in names("workload"):
        wanted = read(find("workload", workload)).get("expect")
        if wanted is None or wanted.get("machine") is None:
            continue
        for kind, (command, *options) in COMMANDS.items():
            said = CliRunner().invoke(main, [command, str(wanted.text("machine")), workload, *options])
            yield f"{workload.replace('/', '_')}.{kind}.gz", f"{said.exit_code}\n{said.output}".encode()


def run(what: str, folder: Path) -> int:
    """Write the documents, or say which differ from those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    count = differ = 0
    for name, content in documents():
        count += 1
        path = folder / name
        if what == "keep":
            path.write_bytes(gzip.compress(content, mtime=0))
        elif not path.exists() or gzip.decompress(path.read_bytes()) != content:
            differ += 1
            print(f"{name} differs", flush=True)
    print(f"{count} documents, {differ} of them differ" if what == "compare" else f"{count} documents kept")
    return int(differ > 0)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("keep", "compare"):
        sys.exit(__doc__)
    sys.exit(run(sys.argv[1], Path(sys.argv[2])))
