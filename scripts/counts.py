"""How large the house is: code lines of each package, modules of a small run, and functions that a link's bandwidth passes.

python scripts/counts.py            each count
python scripts/counts.py --way      the functions that the bandwidth passes, in order
python scripts/counts.py --shape    large files and functions, long lists of parameters, names of several classes

The budgets stand in tests/test_house.py. Docstrings, comments and blank lines are no code.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent

PLAIN: Final = """
import sys, hwsim
hwsim.simulate(MACHINE, WORKLOAD)
print(sum(name.split(".")[0] == "hwsim" for name in sys.modules))
"""
PRODUCTS: Final = ("hwsim", "calibrate/hwsim_calibrate", "calibrate/published")
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LONG_FILE, LONG_FUNCTION, MANY = 300, 40, 7  # lines, lines, parameters
FEW: Final = 20  # elements of a container that is looked into
RATE: Final = 8.125e9  # B/s: a number that nothing else of the run has
MACHINE: Final = """{hwsim: machine/1, parts: {cpu: {kind: cpu, use: d2l-server-cpu}, gpu: {kind: gpu, use: d2l-gpu}},
links: [{name: slot, between: [cpu, gpu], kind: pcie, bandwidth: 8.125 GB/s}]}
"""
WORKLOAD: Final = """{hwsim: workload/1, program: [{copy: {from: cpu, to: gpu, bytes: 16 MB, writes: x}},
{busy: {device: gpu, time: 15 ms, reads: x}}, {wait: all}]}
"""


def code_lines() -> dict[str, int]:
    """Code lines of each package of hwsim, of the files beside them as "hwsim", of calibration, and of the scores beside it."""
    found: Counter[str] = Counter()
    for product in PRODUCTS:
        for path in (ROOT / product).rglob("*.py"):
            room, *inside = path.relative_to(ROOT / product).parts
            found[room if inside and product == "hwsim" else product.rpartition("/")[2]] += _code(
                path.read_text(encoding="utf-8")
            )
    return dict(sorted(found.items()))


def _code(text: str) -> int:
    """Lines with code on them: neither empty nor a comment, or inside a text that is no docstring."""
    code = {number for number, line in enumerate(text.split("\n"), 1) if line.strip() and not line.lstrip().startswith("#")}
    prose = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            code.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code - prose)


def modules() -> int:
    """Modules of hwsim that a run of three ops loads."""
    code = PLAIN.replace("MACHINE", repr(MACHINE)).replace("WORKLOAD", repr(WORKLOAD))
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(run.stdout)


def way() -> list[tuple[str, str]]:
    """(file, function) of every frame that holds the link's bandwidth while the run is prepared and simulated."""
    import hwsim

    for _ in range(4):  # imports, and records, which are compiled for their fourth instance, are no part of the way
        hwsim.simulate(MACHINE, WORKLOAD)
    package = Path(hwsim.__file__).parent
    inside = f"{package}{os.sep}"
    seen: dict[tuple[str, str], None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "return" or not name.startswith(inside):
            return
        key = (Path(name).relative_to(package).as_posix(), frame.f_code.co_qualname)
        if key not in seen and any(_holds(value) for value in frame.f_locals.values()):
            seen[key] = None

    sys.setprofile(profile)
    try:
        hwsim.simulate(MACHINE, WORKLOAD)
    finally:
        sys.setprofile(None)
    return list(seen)


def _holds(value: Any, depth: int = 2) -> bool:
    """Whether a value is the bandwidth, as a number or as its text, or has it among its elements or fields."""
    if isinstance(value, float | str):
        return value in (RATE, "8.125 GB/s")
    if not depth:
        return False
    if isinstance(value, tuple | list):
        return len(value) < FEW and any(_holds(member, depth - 1) for member in value)
    if isinstance(value, dict):
        return len(value) < FEW and any(_holds(member, depth - 1) for member in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_holds(getattr(value, field.name, None), depth - 1) for field in dataclasses.fields(value))
    return False


def shape() -> Iterator[tuple[str, str]]:
    """(count, what it counts) of both products, longest examples last."""
    for package in PRODUCTS:
        texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / package).rglob("*.py"))}
        long = sorted(((len(text.splitlines()), path.name) for path, text in texts.items()), reverse=True)
        large = sum(lines > LONG_FILE for lines, _ in long)
        yield f"{large} of {len(long)}", f"files of more than {LONG_FILE} lines in {package}: {_examples(long)}"
        nodes = [node for text in texts.values() for node in ast.walk(ast.parse(text))]
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        lengths = sorted((((node.end_lineno or 0) - node.lineno + 1, node.name) for node in functions), reverse=True)
        yield (
            str(sum(lines > LONG_FUNCTION for lines, _ in lengths)),
            f"functions of more than {LONG_FUNCTION} lines: {_examples(lengths)}",
        )
        handed = sorted(((len(_parameters(node)), node.name) for node in functions), reverse=True)
        yield str(sum(many >= MANY for many, _ in handed)), f"functions of {MANY} parameters or more: {_examples(handed)}"
        classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
        several = sum(count > 1 for count in classes.values())
        yield (
            f"{several} of {len(classes)}",
            f"class names of several classes: {_examples([(n, c) for c, n in classes.most_common(6)])}",
        )


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [parameter.arg for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _examples(rows: list[tuple[int, str]]) -> str:
    return ", ".join(f"{name} {many}" for many, name in rows[:6])


def counts() -> dict[str, int]:
    """All counts but those of code lines."""
    passed = way()
    return {
        "modules of a run of three ops": modules(),
        "files that a bandwidth passes": len({file for file, _ in passed}),
        "functions that a bandwidth passes": len(passed),
    }


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="store_true")
    parser.add_argument("--shape", action="store_true")
    asked = parser.parse_args()
    if asked.shape:
        for many, what in shape():
            print(f"{many:>10}  {what}")
        return 0
    if asked.way:
        for file, function in way():
            print(f"{file}: {function}")
        return 0
    rooms = {f"code lines of {room}": count for room, count in code_lines().items()}
    for name, count in {**rooms, "code lines in all": sum(rooms.values()), **counts()}.items():
        print(f"{count:8,}  {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
