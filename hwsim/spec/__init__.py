"""Input files in YAML: values with positions, `use:`, parameters and `--set`; all mistakes are reported at once with places.

tree = read("machine.yaml")                       parse a file
machine, workload, note = apply_set(machine, workload, "machine.gpu.count", "8")
tree = resolve(tree, mistakes, kind="machine")    substitute parameters and merge every `use:`
value = decode(tree, cls, mistakes)               convert to a dataclass
mistakes.raise_if_any()                           raise SpecError
"""

from __future__ import annotations

from hwsim.origins import Origin
from hwsim.spec.decode import FieldPlan, decode, decode_all, decode_value, plan
from hwsim.spec.expression import KEPT, ExpressionError, Value, evaluate, mentions, names_in, parameters, substitute
from hwsim.spec.fields import field, place_field
from hwsim.spec.library import find, folder, library_root, names
from hwsim.spec.mistakes import NOWHERE, Mistake, Mistakes, Place, Problem, SourceText, SpecError, did_you_mean
from hwsim.spec.numbers import origin_of, sources
from hwsim.spec.tree import Tree, tree_of
from hwsim.spec.use import check_header, merge, resolve, used_file
from hwsim.spec.warning import CODES, Warning, distinct_warnings
from hwsim.spec.yaml_parser import read, read_bytes, read_text

__all__ = [
    "CODES", "KEPT", "NOWHERE", "ExpressionError", "FieldPlan", "Mistake", "Mistakes",
    "Origin", "Place", "Problem", "SourceText", "SpecError", "Tree", "Value", "Warning", "check_header", "decode", "decode_all",
    "decode_value", "did_you_mean", "distinct_warnings", "evaluate", "field", "find", "folder",
    "library_root", "mentions", "merge", "names", "names_in", "origin_of", "parameters",
    "place_field", "plan", "read", "read_bytes", "read_text", "resolve", "sources", "substitute",
    "tree_of", "used_file", "with_origins",
]  # fmt: skip
