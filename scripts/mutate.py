"""How many small defects the tests catch: mutants drawn at random, each run against the tests that execute its line.

python scripts/mutate.py map                         which test executes which line (runs the default tests once, with coverage)
python scripts/mutate.py draw --count 100 --seed 1   the mutants, listed
python scripts/mutate.py run  --count 100 --seed 1   each in a copy of the project; survivors at the end; exit 1 if there are any
python scripts/mutate.py run  --count 100 --seed 1 --survivors again.txt     only the mutants listed in a file, by number

A mutant is one changed token of a formula or a decision: an operator, a comparison, a number, `min` for `max`, a condition
negated.  Texts, types, raised messages and docstrings are left alone.  Needs `pip install pytest-cov`.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
ROOMS: Final = ("devices", "links", "communication", "models", "workload", "results", "families")
COVERAGE = ROOT / ".coverage.mutate"
FAILED = ROOT / ".coverage.mutate.failed"  # tests that fail without any mutant, a line each: they catch nothing
LIMIT_S = 300  # of one run of pytest; a mutant that never ends is caught
FIRST = 40  # tests tried before all others: the cheapest way to most catches

ARITHMETIC: Final = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*", ast.Pow: "*"}
SIGN: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}
COMPARED: Final = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
SWAPPED: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the text from `begin` to `end` (offsets in bytes) of a file becomes `after`."""

    path: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    source = path.read_bytes()
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    name = path.relative_to(ROOT).as_posix()

    def at(line: int, column: int) -> int:
        return offsets[line - 1] + column

    def change(line: int, begin: int, end: int, after: str) -> Mutant:
        return Mutant(name, line, begin, end, source[begin:end].decode(), after)

    def sign(left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Mutant]:
        begin, end = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        place = source.find(old.encode(), begin, end)
        if place >= 0:
            yield change(left.end_lineno or 0, place, place + len(old), new)

    def visit(node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC and not _is_text(left, right):
                yield from sign(left, right, SIGN[type(operator)], ARITHMETIC[type(operator)])
            case ast.Compare(left, [operator, *_], [right, *_]) if type(operator) in COMPARED:
                yield from sign(left, right, *COMPARED[type(operator)])
            case ast.BoolOp(operator, [first, second, *_]):
                yield from sign(first, second, *(("and", "or") if isinstance(operator, ast.And) else ("or", "and")))
            case ast.Constant() if isinstance(value := node.value, int | float) and not isinstance(value, bool):
                begin, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
                yield change(node.lineno, begin, end, repr(value + 1 if isinstance(value, int) else value * 1.5 or 1.0))
            case ast.Call(ast.Name(called) as function) if called in SWAPPED:
                begin = at(function.lineno, function.col_offset)
                yield change(function.lineno, begin, begin + len(called), SWAPPED[called])
            case ast.Call(ast.Attribute(_, called) as function) if called in SWAPPED:
                end = at(function.end_lineno or 0, function.end_col_offset or 0)
                yield change(function.end_lineno or 0, end - len(called), end, SWAPPED[called])
            case ast.If(test) | ast.IfExp(test) | ast.While(test):
                begin, end = at(test.lineno, test.col_offset), at(test.end_lineno or 0, test.end_col_offset or 0)
                yield change(test.lineno, begin, end, f"not ({source[begin:end].decode()})")
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            if not _left_alone(node, child):
                yield from visit(child)

    yield from visit(ast.parse(source))


def _is_text(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str) for node in nodes)


def _left_alone(node: ast.AST, child: ast.AST) -> bool:
    """Whether a child is no formula and no decision: a type, a text, a message."""
    if isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
        return True
    if isinstance(node, ast.AnnAssign) and child is node.annotation:
        return True
    if isinstance(node, ast.arg) or (isinstance(node, ast.FunctionDef) and child is node.returns):
        return True
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and child in node.decorator_list:
        return True
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def draw(count: int, seed: int, rooms: list[str]) -> list[Mutant]:
    """Mutants drawn at random, every changed token equally likely; the same for the same files and seed."""
    files = sorted(path for room in rooms for path in (ROOT / "hwsim" / room).rglob("*.py"))
    every = [mutant for path in files for mutant in mutants(path)]
    return random.Random(seed).sample(every, min(count, len(every)))


# ---------------------------------------------------------------- which tests execute a line


def make_map() -> int:
    """Run the default tests once and store which of them executes which line."""
    options = ["-q", "-n", "2", "--cov=hwsim", "--cov-context=test", "--cov-report=", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    environment = {**_environment(), "COVERAGE_FILE": str(COVERAGE)}
    done = subprocess.run(command, cwd=ROOT, check=False, env=environment, capture_output=True, text=True)
    lines = [line.split(" ", 1)[1].split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    FAILED.write_text("\n".join(lines))
    print(f"{COVERAGE.name} is written; pytest ended with {done.returncode}, {len(lines)} tests failed")
    return done.returncode


def tests_of(mutant: Mutant) -> list[str]:
    """The tests that execute a mutant's line; of a line that runs at import, the tests that execute any line of its file."""
    from coverage import CoverageData

    data = CoverageData(basename=str(COVERAGE))
    data.read()
    by_line = data.contexts_by_lineno(str(ROOT / mutant.path))
    contexts = by_line.get(mutant.line, [])
    if "" in contexts:
        contexts = [context for group in by_line.values() for context in group]
    return sorted({context.split("|")[0] for context in contexts} - {"", *FAILED.read_text().splitlines()})


# ---------------------------------------------------------------- running


def _environment() -> dict[str, str]:
    return {**os.environ, "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}


def caught_by(mutant: Mutant, copy: Path) -> str:
    """What catches a mutant: the last line of pytest's summary; "" if nothing does."""
    tests = tests_of(mutant)
    random.Random(0).shuffle(tests)
    target = copy / mutant.path
    clean = target.read_bytes()
    target.write_bytes(clean[: mutant.begin] + mutant.after.encode() + clean[mutant.end :])
    try:
        for part in (tests[:FIRST], tests[FIRST:]):
            if part:
                listed = copy / "tests.txt"
                listed.write_text("\n".join(part))
                caught = _fails(copy, listed)
                if caught:
                    return caught
        return ""
    finally:
        target.write_bytes(clean)


def _fails(copy: Path, listed: Path) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        f"@{listed}",
    ]
    data = os.environ.get("HWSIM_REFERENCE_DATA") or str(ROOT.parent / "shared")  # as tests/conftest.py finds it beside ROOT
    environment = {**_environment(), "PYTHONPATH": str(copy), "HWSIM_REFERENCE_DATA": data}
    try:
        run = subprocess.run(command, cwd=copy, check=False, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    except subprocess.TimeoutExpired:
        return "it never ends"
    if run.returncode == 0:
        return ""
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return [*run.stdout.split("\n\n"), "pytest does not start", *lines][-1][:150]


def run(chosen: list[tuple[int, Mutant]], workers: int) -> int:
    """Run every mutant; 1 if any survives."""
    with tempfile.TemporaryDirectory() as directory:
        copies: SimpleQueue[Path] = SimpleQueue()
        for worker in range(workers):
            copy = Path(directory) / str(worker) / "project"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".[a-z]*", "__pycache__"))
            copies.put(copy)

        def one(numbered: tuple[int, Mutant]) -> tuple[int, Mutant, str]:
            copy = copies.get()
            try:
                caught = caught_by(numbered[1], copy)
            finally:
                copies.put(copy)
            print(f"{numbered[0]:4d}  {'caught  ' if caught else 'SURVIVED'}  {numbered[1]}    {caught}", flush=True)
            return (*numbered, caught)

        with ThreadPoolExecutor(workers) as pool:
            told = list(pool.map(one, chosen))
    alive = [result for result in told if not result[2]]
    print(f"\n{len(told) - len(alive)} of {len(told)} caught")
    for number, mutant, _ in alive:
        print(f"{number:4d}  {mutant}")
    return 1 if alive else 0


def main() -> int:
    """Do what is asked; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["map", "draw", "run"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="*", default=list(ROOMS))
    parser.add_argument("--survivors", type=Path, help="a file of numbers: only these mutants")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.what == "map":
        return make_map()
    numbered = list(enumerate(draw(arguments.count, arguments.seed, arguments.rooms), 1))
    if arguments.survivors:
        wanted = {int(line.split()[0]) for line in arguments.survivors.read_text().splitlines() if line.split()}
        numbered = [pair for pair in numbered if pair[0] in wanted]
    if arguments.what == "draw":
        for number, mutant in numbered:
            print(f"{number:4d}  {mutant}")
        return 0
    return run(numbered, arguments.workers)


if __name__ == "__main__":
    raise SystemExit(main())
