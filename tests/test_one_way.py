"""One way for each thing: no stretch of code stands twice under other names, and each formula and table has one place."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from hwsim.units import BYTES

ROOT: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("hwsim", "calibrate/hwsim_calibrate")
STATEMENTS: Final = 6  # of a stretch that is compared with others

DEMAND, LINKS, STORAGE, UNITS = "hwsim/demand.py", "hwsim/links/kind.py", "hwsim/devices/storage.py", "hwsim/units.py"
FORMATS = "hwsim/formats.py"
FORMULAS: Final = [  # in any variables: what it is, how it is written, the file that may write it
    ("knee of a long message", "a - b * math.expm1(-a / b)", DEMAND),
    ("knee of a long message", "b * math.expm1(-a / b)", DEMAND),
    ("knee of a long message", "b * -math.expm1(-a / b)", DEMAND),
    ("knee of a long message", "b / a * math.expm1(-a / b)", DEMAND),
    ("rounded minimum", "a * (1.0 + (a / b) ** c) ** (-1.0 / c)", DEMAND),
    ("rounded maximum", "a * (1.0 + (b / a) ** c) ** (1.0 / c)", DEMAND),
    ("stock used up at a fast rate", "a * b / (b - c)", STORAGE),
]
CONSTANTS: Final = [(299_792_458.0, LINKS), (86_400.0, UNITS)]
NATURAL: Final = r"(\d+)"  # what a natural order splits a name at
WIDTHS: Final = 4  # number formats with a number each: a table of their bytes

Place = tuple[str, int]  # file, line


@dataclass
class House:
    """All code, read once: blocks of statements with a hash of the kinds of nodes in each, and the nodes that tests look at."""

    blocks: list[tuple[str, list[tuple[ast.stmt, int, int]]]] = field(default_factory=list)  # file, (statement, size, hash)
    kept: list[tuple[str, ast.AST]] = field(default_factory=list)  # sums and products, constants, dicts, f-strings

    def read(self, file: str, node: ast.AST) -> tuple[int, int]:
        """(statements in it, hash of its kinds of nodes)."""
        if isinstance(node, ast.BinOp | ast.Constant | ast.Dict | ast.JoinedStr):
            self.kept.append((file, node))
        size, kinds = int(isinstance(node, ast.stmt)), [hash(type(node))]
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, ast.AST):
                many, kind = self.read(file, value)
                size += many
                kinds.append(kind)
            elif isinstance(value, list):
                read = [(child, *self.read(file, child)) for child in value if isinstance(child, ast.AST)]
                size += sum(many for _, many, _ in read)
                kinds += [kind for _, _, kind in read]
                code = [(one, many, kind) for one, many, kind in read if isinstance(one, ast.stmt) and not is_prose(one)]
                if len(code) > 1 and not isinstance(node, ast.ClassDef | ast.Module):
                    self.blocks.append((file, code))
        return size, hash(tuple(kinds))


@cache
def house() -> House:
    """All code of the rooms."""
    found = House()
    gc.disable()  # half a million nodes that all stay: each collection would look at them again
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        found.read(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
    gc.enable()
    return found


def is_prose(node: ast.AST) -> bool:
    """Whether a statement is an import or a docstring."""
    return isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def shape(parts: Sequence[ast.AST], *, formula: bool = False) -> tuple[str, ...]:
    """The parts with variables numbered in the order of their appearance.

    Args:
        formula: whether numbers keep their values and `self.knee` counts as a variable; else constants count by their type alone.
    """
    numbers: dict[str, str] = {}
    words: list[str] = []

    def visit(node: ast.AST) -> None:
        words.append(type(node).__name__)
        match node:
            case ast.Attribute() if formula and not isinstance(node.value, ast.Name | ast.Attribute):
                pass
            case ast.Attribute(attr=name) if formula and name != "expm1":
                words[-1:] = ["Name", numbers.setdefault(ast.unparse(node), str(len(numbers)))]
                return
            case ast.Name(id=name) | ast.arg(arg=name):
                words.append(numbers.setdefault(name, str(len(numbers))) if name != "math" else name)
                return
            case ast.Attribute(attr=name) | ast.keyword(arg=str() as name):
                words.append(name)
            case ast.Constant(value=value):
                words.append(repr(float(value)) if formula and isinstance(value, int | float) else type(value).__name__)
        for child in ast.iter_child_nodes(node):
            visit(child)
        words.append(")")

    for part in parts:
        visit(part)
    return tuple(words)


def stretches(code: list[tuple[ast.stmt, int, int]]) -> Iterator[list[tuple[ast.stmt, int, int]]]:
    """Neighbouring statements, from each on as few as make the number that is compared."""
    for start in range(len(code)):
        total = 0
        for end in range(start, len(code)):
            total += code[end][1]
            if total >= STATEMENTS:
                yield code[start : end + 1]
                break


def test_no_stretch_of_code_stands_twice() -> None:
    near: dict[tuple[int, ...], list[tuple[Place, list[ast.stmt]]]] = defaultdict(list)
    for file, code in house().blocks:
        for stretch in stretches(code):
            place = file, stretch[0][0].lineno
            near[tuple([kinds for _, _, kinds in stretch])].append((place, [statement for statement, _, _ in stretch]))
    places: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for same in near.values():
        for place, statements in same if len(same) > 1 else ():
            places[shape(statements)].append(place)
    assert [same for same in places.values() if len(same) > 1] == []


@pytest.mark.parametrize(("name", "written", "home"), FORMULAS, ids=[written for _, written, _ in FORMULAS])
def test_a_formula_has_one_place(name: str, written: str, home: str) -> None:
    expression = ast.parse(written, mode="eval").body
    assert isinstance(expression, ast.BinOp)
    sought = shape([expression], formula=True)
    alike = [(file, node) for file, node in house().kept if isinstance(node, ast.BinOp) and type(node.op) is type(expression.op)]
    found = [(file, node.lineno) for file, node in alike if shape([node], formula=True) == sought]
    assert {file for file, _ in found} <= {home}, f"{name}: call the function of {home}"


def test_the_formulas_are_found_where_they_are() -> None:
    for written in ("a - b * math.expm1(-a / b)", "a * (1.0 + (a / b) ** c) ** (-1.0 / c)", "a * b / (b - c)"):
        sought = shape([ast.parse(written, mode="eval").body], formula=True)
        assert any(isinstance(node, ast.BinOp) and shape([node], formula=True) == sought for _, node in house().kept), written


@pytest.mark.parametrize(("value", "home"), CONSTANTS)
def test_a_constant_has_one_place(value: float, home: str) -> None:
    files = {file for file, node in house().kept if isinstance(node, ast.Constant) and node.value == value}
    assert files == {home}


def test_the_bytes_of_number_formats_have_one_place() -> None:
    def is_table(node: ast.AST) -> bool:
        if not isinstance(node, ast.Dict):
            return False
        rows = zip(node.keys, node.values, strict=True)
        numbers = (isinstance(key, ast.Constant) and key.value in BYTES and isinstance(value, ast.Constant)
                   and isinstance(value.value, int | float) for key, value in rows)  # fmt: skip
        return sum(numbers) >= WIDTHS

    assert {file for file, node in house().kept if is_table(node)} == {UNITS}


def test_natural_order_has_one_place() -> None:
    assert {file for file, node in house().kept if isinstance(node, ast.Constant) and node.value == NATURAL} == {FORMATS}


def test_a_fraction_is_written_in_per_cent_in_one_place() -> None:
    """No `{100 * fraction:.1f} %` in an f-string: `percent` and its neighbours say it, in any format."""

    def is_by_hand(node: ast.AST) -> bool:
        if not isinstance(node, ast.JoinedStr):
            return False
        return any(
            isinstance(number, ast.FormattedValue)
            and isinstance(sign, ast.Constant)
            and str(sign.value).lstrip().startswith("%")
            and any(isinstance(part, ast.Constant) and part.value == 100 for part in ast.walk(number.value))
            for number, sign in pairwise(node.values)
        )

    assert {file for file, node in house().kept if is_by_hand(node)} == {FORMATS}
