"""Where sums are written: columns of times and bytes in `hwsim.ticks`, floats with `math.fsum`, integers with `sum`.

int64 wraps without a word, the built-in `sum` rounds floats differently from Python 3.12 on, and numpy's sums of floats depend
on its version. A line that looks as if it did one of these, and does not, says so: `# count` for numbers of things, `# fits`
for a sum of times that cannot leave an int64, `# integers` for a sum of integers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).parent.parent / "hwsim"
OTHERS: Final = ("ticks.py",)  # the columns themselves
TIMES: Final = frozenset(
    re.findall(
        r"\w+",
        """begin begins byte bytes busy end ended ends flow fs fixed later latency length period shift since spent start starts
        taken time took totals until""",
    )
)
ADDING: Final = frozenset(("accumulate", "at", "cumprod", "cumsum", "dot", "mean", "prod", "reduce", "reduceat", "sum"))
MAKING: Final = frozenset(("arange", "array", "asarray", "fromiter", "full"))
WHOLE: Final = frozenset(  # attributes and names of integers
    re.findall(
        r"\w+",
        """alike batches busy_fs count counts edges epochs grouped idle_fs lost ops path_fs parameters pieces prompt put_off read
        tensors time_fs times tokens total width""",
    )
)

Finding = tuple[ast.expr, str]


def words(node: ast.AST) -> set[str]:
    """The words of all names in an expression."""
    names = [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
    names += [child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)]
    return {word for name in names for word in name.lower().split("_")}


def wrapping(tree: ast.AST) -> Iterator[Finding]:
    """Sums, products and conversions of what is called like a time or bytes, done by numpy."""
    for node in ast.walk(tree):
        why = ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            why = call_wraps(node, node.func)
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult | ast.LShift | ast.Add)
            and (is_column(node.left) or is_column(node.right))
        ):
            why = "arithmetic with a column: ticks.add or ticks.multiply"
        if why and isinstance(node, ast.expr) and "float64" not in ast.unparse(node):
            yield node, why


def call_wraps(node: ast.Call, method: ast.Attribute) -> str:
    """What to write instead of a call that may wrap; "" if it may not."""
    name = method.attr
    if name not in (*ADDING, *MAKING, "astype"):
        return ""
    owner = ast.unparse(method.value)
    if name in ADDING:
        if name == "at" and not owner.startswith("np."):  # a value somewhere; of numpy it is a sum in place
            return ""
        wraps = owner not in {"np.maximum", "np.minimum", "math", "wires"} and words(node) & TIMES
        return f"{name}: ticks.total, running_total or group_totals" if wraps else ""
    if name != "astype" and (owner != "np" or name not in MAKING):
        return ""
    if "np.int64" not in ast.unparse(node) or not words(method.value if name == "astype" else node) & TIMES:
        return ""
    return "astype: ticks.column or ticks.rounded" if name == "astype" else f"np.{name}: ticks.column or ticks.matching"


def is_column(node: ast.expr) -> bool:
    """Whether it is plainly a column of times: a row or rows of start, end or time of a timeline, a graph or a block."""
    text = "" if isinstance(node, ast.Constant | ast.Name | ast.JoinedStr) else ast.unparse(node)
    return (
        re.fullmatch(r"\(?(\w+\.)*(timeline|flat|block|path|rows|compiled)\.(start|end|time|fixed|flow|took)\b.*", text)
        is not None
    )


def floating(tree: ast.AST) -> Iterator[Finding]:
    """Calls of the built-in `sum` whose terms are not plainly integers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
            first = node.args[0]
            if not is_whole(first.elt if isinstance(first, ast.GeneratorExp) else first):
                yield node, f"{ast.unparse(node)}: math.fsum"


def is_whole(node: ast.expr) -> bool:
    """Whether an expression is plainly an integer, or a sequence of integers."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.LShift(), right=right):
            return is_whole(left) and is_whole(right)
        case ast.Call(func=ast.Name(id="len" | "int" | "sum" | "any" | "all")):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in WHOLE
        case _:
            return False


def unexcused(rule: Callable[[ast.AST], Iterator[Finding]], where: str, *excuses: str) -> list[str]:
    """What a rule finds in files in which one of the words of `where` stands."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(OTHERS):
            continue
        source = path.read_text(encoding="utf-8")
        if re.search(where, source) is None:
            continue
        lines = source.splitlines()
        for node, why in rule(ast.parse(source)):
            own = " ".join(lines[node.lineno - 1 : node.end_lineno])
            if not any(excuse in own for excuse in excuses):
                found.append(f"{name}:{node.lineno}: {why}")
    return found


def test_columns_of_times_and_bytes_are_added_up_in_one_place() -> None:
    assert unexcused(wrapping, r"\bnp\b|\.(start|end|time|fixed|flow|took)\b", "# count", "# fits") == []


def test_floats_are_added_up_alike_by_every_python() -> None:
    assert unexcused(floating, r"\bsum\(", "# integers") == []


@pytest.mark.parametrize(
    "line",
    [
        "int((timeline.end - timeline.start).sum())",
        "np.add.reduceat(took, firsts)",
        "np.cumsum(bytes_held)",
        "np.add.at(totals, place, took)",
        "timeline.start[taken] + shift",
        "flat.time[ops] * 3",
        "times.astype(np.int64) + busy_fs.astype(np.int64)",
        "np.array([held.since], np.int64)",
        "np.full(3, size_bytes, np.int64)",
        "seconds_of_end.mean()",
    ],
)
def test_the_rule_finds_what_may_wrap(line: str) -> None:
    assert len(list(wrapping(ast.parse(line)))) == 1


@pytest.mark.parametrize("line", ["sum(seconds)", "sum(each.share for each in rows)", "sum([a / b, c])", "sum(times_s.values())"])
def test_the_rule_finds_sums_of_floats(line: str) -> None:
    assert len(list(floating(ast.parse(line)))) == 1


@pytest.mark.parametrize("line", ["sum(len(row) for row in rows)", "sum(one.time_fs for one in found)", "sum(x == y for x in z)"])
def test_sums_of_integers_pass(line: str) -> None:
    assert list(floating(ast.parse(line))) == []


def test_no_power_of_a_column_is_left_to_numpy() -> None:
    """Powers, logarithms and exponentials of columns round differently from one version of numpy, and one CPU, to the next."""
    names = set(
        re.findall(r"\w+", "cbrt exp exp2 expm1 float_power geomspace hypot log log10 log1p log2 logaddexp logspace power sin")
    )
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: np.{node.func.attr}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if names & set(re.findall(r"\w+", text := path.read_text("utf-8"))) and "np" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr in names and ast.unparse(node.func.value) == "np"
    ]  # fmt: skip
    assert not found, "by `math`, number by number, or by `hwsim.workload.load.numbers`"
