"""No op half added: every kind has its file, its line in the union and the table, an example and documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from hwsim import ops
from hwsim.ops import OPS, AnyOp
from hwsim.ops.op import Dtype
from hwsim.spec import Mistakes, decode, plan, read_text
from hwsim.units import BYTES
from hwsim.workload.reading import _CONTROL

SHARED = {"__init__", "exchange", "op"}  # files of the package that are no kind of their own


def example(kind: str) -> str:
    """The first line of YAML in the docstring of a kind's file."""
    module = __import__(OPS[kind].__module__, fromlist=["x"])
    found, *_ = re.findall(rf"^    {kind}: (\{{.*\}})$", module.__doc__ or "", re.MULTILINE)
    return str(found)


def test_files_union_and_table_agree() -> None:
    files = {path.stem.replace("_", "-") for path in Path(ops.__file__).parent.glob("*.py") if path.stem not in SHARED}
    assert files == set(OPS) == {kind.kind for kind in get_args(AnyOp)}
    assert list(OPS) == sorted(OPS)
    for name, kind in OPS.items():
        assert kind.kind == name
        assert kind.__module__ == f"hwsim.ops.{name.replace('-', '_')}"


def test_no_op_is_called_as_a_statement() -> None:
    assert not set(OPS) & set(_CONTROL)


@pytest.mark.parametrize("kind", OPS)
def test_every_op_has_an_example_that_reads(kind: str) -> None:
    mistakes = Mistakes()
    cls: Any = OPS[kind]
    decode(read_text(example(kind)), cls, mistakes)
    mistakes.raise_if_any()


@pytest.mark.parametrize("kind", OPS)
def test_every_key_of_an_op_is_documented(kind: str) -> None:
    cls: Any = OPS[kind]
    for each in plan(cls):
        assert each.doc, f"{kind}.{each.key}"


def test_every_number_format_of_the_devices_has_a_width() -> None:
    assert set(BYTES) == set(get_args(Dtype))
