"""Decoder: tree -> frozen dataclass, with a mistake and its place for every invalid value.

A schema is a frozen dataclass. Its fields may be str, int, float, bool, Literal, or a unit type of `hwsim.units` (a text with a
unit in the file, a number in SI units in the field). They may also be X | None, unions, tuple[X, ...], tuple[X, Y],
Mapping[str, X] and other schemas. A field of type Tree remains undecoded, for a caller that decodes it by its `kind`. A field of
type Place is set to the place of the mapping (see `place_field`). `hwsim.spec.fields.field` defines bounds and keys.

A number may include its source: `{value: 900 GB/s, source: datasheet, ref: "..."}`.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Collection, Mapping
from functools import cache, cached_property, partial
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.mistakes import Mistakes, Place, did_you_mean
from hwsim.spec.numbers import (
    FAILED,
    NO_BOUNDS,
    SOURCE_KEYS,
    Bounds,
    Context,
    Doubts,
    Shape,
    number_shape,
    origins,
    refuse_doubts,
    short,
    with_origins,
)
from hwsim.spec.tree import Tree
from hwsim.units import Dimension, UnitError

T = TypeVar("T")
_MISSING: Final = dataclasses.MISSING
_PART_INSIDE: Final = frozenset({"use"})  # additional keys of a part inside a part


def decode(
    tree: Tree, cls: type[T], mistakes: Mistakes, *, ignore: Collection[str] = (), sourced: bool = False, sure: bool = False
) -> T | None:
    """Decode a mapping; return None if a mistake was added.

    Args:
        ignore: keys that the caller decodes (`kind`, `use`, `count`).
        sourced: whether every mapping may have `source:` and `ref:`, as in the files of machines and parts. A class with
            `sources` receives the source of each number, and each of its `problems()` becomes a mistake.
        sure: whether stated uncertainties are refused, even if results of the class include them.
    """
    if sourced and sure:
        refuse_doubts(tree, mistakes)
    value: Any = _read_dataclass(cls, tree, Context(mistakes, sourced), frozenset(ignore), sure=sure)
    if value is FAILED:
        return None
    if sourced:
        _set_sources(value, origins(tree))
    if sourced and hasattr(value, "sources"):
        for key, message, hint in value.problems() if hasattr(value, "problems") else ():
            *path, last = key.split(".")
            node = tree
            for step in path:
                node = node.get(step) or node
            mistakes.add(node.key_place(last), message, hint)
    decoded: T = value
    return decoded


def _set_sources(value: Any, by_path: Mapping[str, Origin]) -> None:
    """Set the source of each number, by key, of a model and of the parts inside it."""
    if hasattr(value, "sources"):
        object.__setattr__(value, "sources", by_path)  # not a key of the file; the model is new
    cls: type = type(value)
    for entry in plan(cls):
        inner = getattr(value, entry.name)
        if hasattr(inner, "sources"):
            start = f"{entry.key}."
            _set_sources(inner, {path.removeprefix(start): text for path, text in by_path.items() if path.startswith(start)})


def decode_all(tree: Tree, cls: type[T], mistakes: Mistakes, *, ignore: Collection[str] = (), sourced: bool = False) -> T:
    """Decode the mapping of an entire file without uncertainties; arguments as in `decode`.

    Raises:
        SpecError: any mistake, including earlier ones.
    """
    mistakes.raise_if_any()
    value = decode(tree, cls, mistakes, ignore=ignore, sourced=sourced, sure=True)
    mistakes.raise_if_any()
    if value is None:
        raise TypeError(f"no {title(cls)} was decoded, but no mistake was added")
    return value


def decode_value(tree: Tree, annotation: Any, mistakes: Mistakes) -> Any:
    """Decode a value of any type that a field may have (`Seconds`, `tuple[str, ...]`); return None if a mistake was added."""
    shape = _shape(annotation, NO_BOUNDS)
    value = None if shape.optional and tree.value is None else shape.read(tree, Context(mistakes, False))
    return None if value is FAILED else value


@dataclass(frozen=True)
class FieldPlan:
    """A field of a schema, for decoding and documentation."""

    name: str
    key: str
    annotation: Any
    bounds: Bounds
    required: bool
    default: Any  # MISSING if there is none, or a factory
    doc: str
    example: str | None
    record: str = ""  # reason why no result depends on it
    doubted: bool = True  # whether results include its uncertainty, if they do for the class

    @cached_property
    def shape(self) -> Shape:
        """Decoder of the field's type."""
        return _shape(self.annotation, self.bounds)


_hints: Final = cache(partial(get_type_hints, include_extras=True))


@cache
def plan(cls: type) -> tuple[FieldPlan, ...]:
    """Return the fields of a schema that are keys of a file, in order."""
    hints = _hints(cls)
    plans = []
    for entry in dataclasses.fields(cls):
        if not entry.init or hints[entry.name] is Place:
            continue
        given = entry.metadata
        limits = (given.get("minimum"), given.get("maximum"), given.get("exclusive_minimum"))
        bounds = Bounds(*limits, bool(given.get("one_or_many")), given.get("choices"))
        required = entry.default is _MISSING and entry.default_factory is _MISSING
        key, doc = given.get("key", entry.name), given.get("doc", "")
        example, record = given.get("example"), given.get("record", "")
        doubted = given.get("doubted", True)
        plans.append(
            FieldPlan(entry.name, key, hints[entry.name], bounds, required, entry.default, doc, example, record, doubted)
        )
    return tuple(plans)


@cache
def _keys(cls: type) -> frozenset[str]:
    return frozenset(entry.key for entry in plan(cls))


@cache
def _place_names(cls: type) -> tuple[str, ...]:
    hints = _hints(cls)
    return tuple(field.name for field in dataclasses.fields(cls) if field.init and hints[field.name] is Place)


def title(cls: type) -> str:
    """Return the name of a schema in messages: its `kind`, else the words of the class name."""
    kind = getattr(cls, "kind", None)
    return kind if isinstance(kind, str) else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()


# ---- mappings ----


def _read_dataclass(cls: type, tree: Tree, context: Context, ignore: frozenset[str] = frozenset(), *, sure: bool = False) -> Any:
    carried: Doubts = "" if sure else getattr(cls, "doubts_of", "")
    tree = with_origins(tree) if carried == "file" else tree
    mistakes = context.mistakes
    exact = Context(mistakes, context.sourced) if context.doubts else context
    doubting = Context(mistakes, context.sourced, carried) if carried else exact
    fields = plan(cls)
    if not isinstance(tree.value, dict):
        keys = ", ".join(entry.key for entry in fields[:8])
        hint = f"its keys: {keys}" if keys else None
        mistakes.add(tree.place, f"expected a mapping for {title(cls)}, got {tree.what()}", hint)
        return FAILED
    complete = True  # not the count of mistakes, because a repeated alias adds only one
    values: dict[str, Any] = {}
    accepted = _keys(cls) | ignore if ignore else _keys(cls)
    for key in tree.value:
        if key not in accepted and not (context.sourced and key in SOURCE_KEYS):
            mistakes.add(tree.key_place(key), f"unknown key '{short(key)}' in {title(cls)}", did_you_mean(key, accepted))
            complete = False
    for entry in fields:
        child = tree.value.get(entry.key)
        if child is None:
            if entry.required:
                mistakes.add(tree.place, f"'{entry.key}' is missing", _what_it_is(entry))
                complete = False
            continue
        shape = entry.shape
        if child.value is None and shape.optional:
            values[entry.name] = None
            continue
        if child.value is None and shape.takes != "any":
            mistakes.add(tree.key_place(entry.key), f"'{entry.key}' has no value", _what_it_is(entry))
            complete = False
            continue
        doubts = carried and entry.doubted and not child.is_list and (not child.is_mapping or child.get("value") is not None)
        value = values[entry.name] = shape.read(child, doubting if doubts else exact)
        complete = complete and value is not FAILED
    if not complete:
        return FAILED
    for name in _place_names(cls):
        values[name] = tree.place
    try:
        return cls(**values)
    except UnitError as error:
        mistakes.add_unit_error(tree.place, error)
    except ValueError as error:
        mistakes.add(tree.place, str(error))
    return FAILED


def _what_it_is(entry: FieldPlan) -> str:
    needs = entry.shape.expects
    return f"{entry.doc.rstrip('.')}: {needs}" if entry.doc else needs


# ---- types to shapes ----


@cache
def _shape(annotation: Any, bounds: Bounds) -> Shape:
    """Decoder of a type; raise TypeError for a type that no field may have."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for extra in arguments[1:]:
            if isinstance(extra, Dimension):
                return number_shape(bounds, extra)
        return _shape(arguments[0], bounds)
    if origin in (Union, types.UnionType):
        return _union(
            tuple(_shape(argument, bounds) for argument in arguments if argument is not type(None)), type(None) in arguments
        )
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple:
        return _tuple(arguments, bounds)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_shape(arguments[1], bounds))
    if annotation in (Any, object):
        return Shape("any value", "any", lambda tree, _: tree.plain())
    if annotation is Tree:
        return Shape("any value", "any", lambda tree, _: tree)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        ignore = _PART_INSIDE if hasattr(annotation, "kind") else frozenset()
        return Shape(
            f"a mapping ({title(annotation)})",
            "mapping",
            lambda tree, context: _read_dataclass(annotation, tree, context, ignore),
        )
    if annotation is str:
        if bounds.choices is not None:
            return _literal(bounds.choices)
        return Shape("a text", "scalar", _read_text)
    if annotation is bool:
        return Shape("true or false", "scalar", _read_bool)
    if annotation is int:
        return number_shape(bounds, whole=True)
    if annotation is float:
        return number_shape(bounds)
    raise TypeError(f"a schema cannot have a field of type {annotation!r}")


def _read_text(tree: Tree, context: Context) -> Any:
    if isinstance(tree.value, str):
        return tree.value
    hint = None if tree.is_mapping or tree.is_list or tree.value is None else "put it in quotes"
    if hint and tree.place.text.lstrip("\"'(").startswith("$"):
        hint = "the expression is a number; a part is selected by gpu[...]"
    context.mistakes.add(tree.place, f"{tree.what()} is not a text", hint)
    return FAILED


def _read_bool(tree: Tree, context: Context) -> Any:
    if isinstance(tree.value, bool):
        return tree.value
    word = str(tree.value).lower()
    hint = "write true" if word in ("yes", "on", "y", "1") else "write false" if word in ("no", "off", "n", "0") else None
    context.mistakes.add(tree.place, f"{tree.what()} is not true or false", hint)
    return FAILED


_ELSEWHERE: Final = {  # names of number formats in other tools
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "single": "fp32", "float16": "fp16",
    "half": "fp16", "bfloat16": "bf16", "float8": "fp8", "float4": "fp4", "int": "int8", "i8": "int8",
    "mxfp8": "fp8", "nvfp4": "fp4",
}  # fmt: skip


def _literal(allowed: tuple[Any, ...]) -> Shape:
    listed = ", ".join(str(choice) for choice in allowed)
    expects = f"one of {listed}" if len(allowed) > 1 else f"'{listed}'"

    def read(tree: Tree, context: Context) -> Any:
        for choice in allowed:
            if type(choice) is type(tree.value) and choice == tree.value:
                return choice
        texts = [choice for choice in allowed if isinstance(choice, str)]
        near = None
        if isinstance(tree.value, str):
            meant = _ELSEWHERE.get(tree.value.lower(), "")
            near = did_you_mean(meant if meant in texts else tree.value, texts)
        context.mistakes.add(tree.place, f"{tree.what()} is not {expects}", near if near and near.startswith("did") else None)
        return FAILED

    return Shape(expects, "scalar", read)


# ---- several ----


def _tuple(arguments: tuple[Any, ...], bounds: Bounds) -> Shape:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        element = _shape(arguments[0], dataclasses.replace(bounds, one_or_many=False))

        def read(tree: Tree, context: Context) -> Any:
            if isinstance(tree.value, list):
                return _all(tree.value, [element] * len(tree.value), context)
            if bounds.one_or_many and tree.value is not None:
                return _all([tree], [element], context)
            hint = None if tree.value is None or tree.is_mapping else f"write [{tree.value}]"
            context.mistakes.add(tree.place, f"expected a list, got {tree.what()}", hint)
            return FAILED

        expects = f"a list, each {element.expects}"
        return Shape(f"{element.expects}, or {expects}", "any", read) if bounds.one_or_many else Shape(expects, "list", read)

    elements = [_shape(argument, bounds) for argument in arguments]

    def read_fixed(tree: Tree, context: Context) -> Any:
        if not isinstance(tree.value, list) or len(tree.value) != len(elements):
            actual = f"a list of {len(tree.value)}" if isinstance(tree.value, list) else tree.what()
            context.mistakes.add(tree.place, f"expected a list of {len(elements)}, got {actual}")
            return FAILED
        return _all(tree.value, elements, context)

    return Shape(f"a list of {len(elements)}", "list", read_fixed)


def _all(trees: list[Tree], shapes: list[Shape], context: Context) -> Any:
    values = [
        None if shape.optional and tree.value is None else shape.read(tree, context)
        for tree, shape in zip(trees, shapes, strict=True)
    ]
    return FAILED if any(value is FAILED for value in values) else tuple(values)


def _mapping(element: Shape) -> Shape:
    def read(tree: Tree, context: Context) -> Any:
        if not isinstance(tree.value, dict):
            context.mistakes.add(tree.place, f"expected a mapping, got {tree.what()}", f"from names to {element.expects}")
            return FAILED
        skipped = SOURCE_KEYS if context.sourced else ()
        values = {
            key: None if element.optional and child.value is None else element.read(child, context)
            for key, child in tree.value.items()
            if key not in skipped
        }
        return FAILED if any(value is FAILED for value in values.values()) else values

    return Shape(f"a mapping from names, each {element.expects}", "mapping", read)


def _union(shapes: tuple[Shape, ...], optional: bool) -> Shape:
    if len(shapes) == 1:
        return dataclasses.replace(shapes[0], optional=optional)
    expects = " or ".join(dict.fromkeys(shape.expects for shape in shapes))

    def read(tree: Tree, context: Context) -> Any:
        node = "mapping" if tree.is_mapping else "list" if tree.is_list else "scalar"
        candidates = [shape for shape in shapes if shape.takes in (node, "any")]
        if node == "mapping" and tree.get("value") is not None:  # a number with its source
            candidates = [shape for shape in shapes if shape.takes == "scalar"] or candidates
        if len(candidates) == 1:
            return candidates[0].read(tree, context)
        trials = [Mistakes() for _ in candidates]
        for shape, trial in zip(candidates, trials, strict=True):
            value = shape.read(tree, dataclasses.replace(context, mistakes=trial))
            if value is not FAILED and not len(trial):
                return value
        if node == "mapping" and trials and len(fewest := min(trials, key=len)):  # mistakes of the closest candidate
            context.mistakes.extend(fewest)
            return FAILED
        context.mistakes.add(tree.place, f"{tree.what()} is not {expects}")
        return FAILED

    takes = shapes[0].takes if len({shape.takes for shape in shapes}) == 1 else "any"
    return Shape(expects, takes, read, optional)
