"""No op half added: every kind has its line in the table, an example and documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from hwsim import ops
from hwsim.ops import OPS
from hwsim.ops.op import Dtype, Op
from hwsim.spec import Mistakes, decode, plan, read_text
from hwsim.units import BYTES
from hwsim.workload.parser import _CONTROL
from tests.each import each


def example(kind: str) -> str:
    """The first line of YAML in the docstring of a kind's file."""
    module = __import__(OPS[kind].__module__, fromlist=["x"])
    found, *_ = re.findall(rf"^    {kind}: (\{{.*\}})$", module.__doc__ or "", re.MULTILINE)
    return str(found)


def classes() -> set[type[Op]]:
    """Every class with a kind in the files of the package."""
    for path in Path(ops.__file__).parent.glob("*.py"):
        import_module(f"hwsim.ops.{path.stem}".removesuffix(".__init__"))
    found: list[type[Op]] = [Op]
    for cls in found:
        found += cls.__subclasses__()
    return {cls for cls in found if "kind" in vars(cls)}


def test_table_and_files_agree() -> None:
    listed = classes()
    assert {cls.kind for cls in listed} == set(OPS)
    assert set(OPS.values()) <= listed
    assert list(OPS) == sorted(OPS)
    assert all(op.kind == name for name, op in OPS.items())


def test_names_of_ops_need_no_import() -> None:
    code = "import sys; from hwsim.ops import OPS; assert 'matmul' in OPS; assert 'hwsim.ops.matmul' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_op_is_called_as_a_statement() -> None:
    assert not set(OPS) & set(_CONTROL)


@each("kind", OPS)
def test_every_op_has_an_example_that_reads(kind: str) -> None:
    mistakes = Mistakes()
    cls: Any = OPS[kind]
    decode(read_text(example(kind)), cls, mistakes)
    mistakes.raise_if_any()


@each("kind", OPS)
def test_every_key_of_an_op_is_documented(kind: str) -> None:
    cls: Any = OPS[kind]
    for field in plan(cls):
        assert field.doc, f"{kind}.{field.key}"


def test_every_number_format_of_the_devices_has_a_width() -> None:
    assert set(BYTES) == set(get_args(Dtype))
