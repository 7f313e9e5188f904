"""Expressions of parameters: `$name`, `$batch * 38.5 MB`, `ceil($n / 8)`, `($rank + 1) mod $ranks`.

Numbers may have units and keep them. Operators: + - * / // % mod and parentheses; functions: min max ceil floor round.
There is no other syntax, so an expression cannot execute code. A single `$name` is the parameter itself, which may be a text or a
list; `$$` is a dollar sign. In a name, brackets contain the number of a part: `gpu[($rank + 1) mod $ranks]` is `gpu3`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from hwsim.spec.memo import memoized_entries
from hwsim.spec.mistakes import HintedError, Mistakes, Place, did_you_mean
from hwsim.spec.tree import MAX_DEPTH, Tree
from hwsim.spec.yaml_parser import MAX_NODES
from hwsim.units import Quantity, UnitError, parse

Number = int | float | Quantity
Value = int | float | bool | str | Quantity
KEPT: Final = frozenset({"self", "rank", "ranks"})
_MAX_LENGTH: Final = 500
_MAX_NESTING: Final = 40
_MAX_BITS: Final = 1000

_NAME: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    (?P<unit>\s*(?:%(?=\s*(?:$|[-+*/,)]))|(?!mod\b)(?:1/)?[A-Za-zµμ]+(?:/[A-Za-zµμ]+)*)(?!\s*\())?
    |\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<word>[A-Za-z_]+)
    |(?P<sign>//|[-+*/%(),])
    )""",
    re.VERBOSE,
)
_NUMBERED: Final = re.compile(r"(?<![$\w])([A-Za-z_]\w*)\[([^][]*)\]")  # gpu[...]: number of a part
_FUNCTIONS: Final = ("min", "max", "ceil", "floor", "round")


class ExpressionError(HintedError):
    """An error for an expression that cannot be parsed or evaluated."""


def names_in(text: str) -> tuple[str, ...]:
    """Return the parameters that a text mentions, in order, without repetition.

    >>> names_in("($rank + $k) mod $ranks, $$5")
    ('rank', 'k', 'ranks')
    """
    return tuple(dict.fromkeys(_NAME.findall(text.replace("$$", ""))))


def evaluate(text: str, names: Mapping[str, Value | Tree]) -> Value | Tree:
    """Return the value of an expression; raise ExpressionError or UnitError.

    >>> evaluate("($rank + 1) mod $ranks", {"rank": 3, "ranks": 4})
    0
    >>> str(evaluate("$batch * 38.5 MB", {"batch": 64}))
    '2464000000.0 B'
    >>> evaluate("node[$rank // 8].gpu[$rank mod 8]", {"rank": 11})
    'node1.gpu3'
    """
    stripped = text.strip()
    if match := _NAME.fullmatch(stripped):
        return _look_up(match[1], names)
    if _NUMBERED.search(stripped):
        return _numbered(stripped, names)
    return _Parser(stripped, names).whole()


def _numbered(text: str, names: Mapping[str, Value | Tree]) -> str:
    """A name with every bracket evaluated to the number of a part."""

    def number(match: re.Match[str]) -> str:
        value = _Parser(match[2], names).whole()
        if isinstance(value, Quantity) or value != int(value) or value < 0:
            raise ExpressionError(f"the number of a part in '{text}' is {value}: expected 0, 1, 2, ...")
        return f"{match[1]}{int(value)}"

    filled = _NUMBERED.sub(number, text)
    if "$" in filled:
        raise ExpressionError(f"'{text}' has a parameter outside its brackets", "write gpu[$rank] or a single $name")
    return filled


def mentions(tree: Tree) -> bool:
    """Return whether any text in a tree may mention a parameter."""
    value = tree.value
    if isinstance(value, str):
        return "$" in value
    if isinstance(value, dict):
        return any(map(mentions, value.values()))
    return isinstance(value, list) and any(map(mentions, value))


def substitute(tree: Tree, names: Mapping[str, Value | Tree], mistakes: Mistakes, keep: Collection[str] = KEPT) -> Tree:
    """Return the tree with every parameter replaced by its value; add a mistake for each invalid expression.

    A text that mentions a name of `keep` (known only per rank) remains a text for later evaluation, with the values of all other
    parameters inserted.
    """
    kept = frozenset(keep)
    added = 0  # nodes of inserted lists and mappings

    def walk(node: Tree, depth: int) -> Tree:
        nonlocal added
        if isinstance(node.value, str):
            if "$" not in node.value or added > MAX_NODES:
                return node
            replaced = _in_text(node, node.value, names, mistakes, kept)
            if isinstance(replaced.value, dict | list):
                nodes, height = _extent(replaced)
                added += nodes
                if added > MAX_NODES or depth + height > MAX_DEPTH:
                    mistakes.add(node.place, f"the file exceeds {MAX_NODES:,} values or {MAX_DEPTH} levels with its parameters")
                    return node
            return replaced
        changed = False
        if isinstance(node.value, dict):
            entries = {}
            for key, child in node.value.items():
                entries[key] = walk(child, depth + 1)
                changed |= entries[key] is not child
            return node.having(entries) if changed else node
        if isinstance(node.value, list):
            elements = []
            for child in node.value:
                elements.append(walk(child, depth + 1))
                changed |= elements[-1] is not child
            return node.having(elements) if changed else node
        return node

    return walk(tree, 0)


def _extent(tree: Tree) -> tuple[int, int]:
    """Number of nodes and depth of a tree with aliases expanded; counting stops at the limit."""
    nodes, deepest, stack = 0, 0, [(tree, 0)]
    while stack and nodes <= MAX_NODES:
        node, depth = stack.pop()
        nodes, deepest = nodes + 1, max(deepest, depth)
        inner = node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
        stack.extend((child, depth + 1) for child in inner)
    return nodes, deepest


def _in_text(node: Tree, text: str, names: Mapping[str, Value | Tree], mistakes: Mistakes, keep: frozenset[str]) -> Tree:
    mentioned = names_in(text)
    if not mentioned:
        return replace(node, value=text.replace("$$", "$"))
    try:
        if keep.isdisjoint(mentioned):
            value = evaluate(text, names)
            if isinstance(value, Tree):
                return replace(value, place=node.place, over=node.over)
            return replace(node, value=value)
        return replace(node, value=_written_out(text, names, keep))
    except (ExpressionError, UnitError) as error:
        mistakes.add(node.place, error.message, error.hint)
    except ZeroDivisionError:
        mistakes.add(node.place, f"'{text}' divides by zero")
    except OverflowError:
        mistakes.add(node.place, f"'{text}' is too large to be a number")
    return node


def _written_out(text: str, names: Mapping[str, Value | Tree], keep: frozenset[str]) -> str:
    """The text with all parameters except the kept ones replaced; its syntax is checked."""

    def value(match: re.Match[str]) -> str:
        if match[1] in keep:
            return match[0]
        inserted = _look_up(match[1], names)
        if isinstance(inserted, (Tree, bool)):
            raise ExpressionError(f"'${match[1]}' is not a number")
        return inserted if isinstance(inserted, str) else f"({inserted})"

    out = _NAME.sub(value, text)
    if not _NAME.fullmatch(out.strip()) and all(name != "self" for name in names_in(out)):
        evaluate(out, dict.fromkeys(keep, 1))
    return out


def parameters(
    let: Tree | None,
    mistakes: Mistakes,
    given: Mapping[str, Value | Tree] | None = None,
    kept: Collection[str] = KEPT,
) -> dict[str, Value | Tree]:
    """Return the values of a `let:` block, whose parameters may refer to each other.

    Args:
        given: values that take precedence over those of the block.
        kept: reserved names; none in a machine, which has no ranks.

    A mistake is added for an invalid or reserved name, and for a cycle of parameters.
    """
    values: dict[str, Value | Tree] = dict(given or {})
    if let is None or let.value is None:
        return values
    if not isinstance(let.value, dict):
        mistakes.add(let.place, f"`let`: expected a mapping from names to values, got {let.what()}")
        return values
    waiting = {name: tree for name, tree in let.value.items() if name not in values}
    for name in list(waiting):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            mistakes.add(let.key_place(name), f"'{name}' is not a valid parameter name: use letters, digits and _")
            del waiting[name]
        elif name in kept:
            mistakes.add(let.key_place(name), f"the parameter name '{name}' is reserved (${name})", "choose another name")
            del waiting[name]
    while waiting:
        ready = [name for name, tree in waiting.items() if not any(other in waiting for other in _needs(tree))]
        if not ready:
            for name, tree in waiting.items():
                mistakes.add(tree.place, f"parameter '{name}' is part of a cycle: {', '.join(sorted(waiting))}")
            return values
        for name in ready:
            trial = Mistakes()
            value = substitute(waiting.pop(name), values, trial, keep=frozenset())
            mistakes.extend(trial)
            if len(trial):
                values[name] = 1  # avoids further mistakes of parameters that depend on it
            else:
                values[name] = value if isinstance(value.value, dict | list) or value.value is None else value.value
    return values


def unused(tree: Tree) -> Iterator[tuple[str, Place | None]]:
    """Yield (name, place) of each parameter that the file does not mention; none for a file with `use:`."""
    let = tree.get("let")
    if let is None or not isinstance(let.value, dict) or tree.get("use") is not None:
        return
    needed = set[str]().union(*memoized_entries("needs", tree, lambda _, entry: _needs(entry)).values())
    yield from ((name, let.key_place(name)) for name in let.value if name not in needed)


def _needs(tree: Tree) -> set[str]:
    """Parameters that a tree mentions."""
    needed: set[str] = set()
    stack, seen = [tree], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node.value, str):
            needed.update(names_in(node.value) if "$" in node.value else ())
        elif isinstance(node.value, dict):
            stack.extend(node.value.values())
        elif isinstance(node.value, list):
            stack.extend(node.value)
    return needed


def _look_up(name: str, names: Mapping[str, Value | Tree]) -> Value | Tree:
    if name not in names:
        known = did_you_mean(name, names)
        raise ExpressionError(f"unknown parameter '${name}'", known or "parameters are defined under 'let:'")
    return names[name]


class _Parser:
    """A parser with precedence climbing that evaluates the expression during parsing."""

    def __init__(self, text: str, names: Mapping[str, Value | Tree]) -> None:
        self.text, self.names, self.position, self.nesting = text, names, 0, 0
        self.shown = text if len(text) <= 60 else text[:57] + "..."
        if len(text) > _MAX_LENGTH:
            raise ExpressionError(f"the expression has more than {_MAX_LENGTH} characters")
        self.token = self._next()

    def _next(self) -> re.Match[str] | None:
        if not self.text[self.position :].strip():
            return None
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].strip()
            raise ExpressionError(f"'{self.shown}' is not an expression: unexpected '{rest[:10]}'", _AS_TEXT)
        self.position = match.end()
        return match

    def _sign(self) -> str | None:
        if self.token is None:
            return None
        return "%" if self.token["word"] == "mod" else self.token["sign"]

    def _advance(self) -> None:
        self.token = self._next()

    def whole(self) -> Number:
        value = self._sum()
        if self.token is not None:
            raise ExpressionError(f"'{self.shown}' is not an expression: '{self.token[0].strip()}' is out of place", _AS_TEXT)
        return value

    def _sum(self) -> Number:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise ExpressionError(f"the expression is nested more than {_MAX_NESTING} levels deep")
        value = self._product()
        while (sign := self._sign()) in ("+", "-"):
            self._advance()
            right = self._product()
            value = _sized(value + right if sign == "+" else value - right)
        self.nesting -= 1
        return value

    def _product(self) -> Number:
        value = self._unary()
        while (sign := self._sign()) in ("*", "/", "//", "%"):
            self._advance()
            value = _sized(_OPERATORS[sign or ""](value, self._unary()))
        return value

    def _unary(self) -> Number:
        negative = False
        while (sign := self._sign()) in ("-", "+"):
            negative ^= sign == "-"
            self._advance()
        value = self._operand()
        return -value if negative else value

    def _operand(self) -> Number:
        token = self.token
        if token is None:
            raise ExpressionError(f"'{self.shown}' is incomplete")
        if token["number"]:
            self._advance()
            return _number(token["number"], (token["unit"] or "").strip())
        if token["name"]:
            self._advance()
            return _as_number(token["name"], _look_up(token["name"], self.names))
        if token["sign"] == "(":
            self._advance()
            value = self._sum()
            self._expect(")")
            return value
        if token["word"] in _FUNCTIONS:
            self._advance()
            self._expect("(")
            arguments = [self._sum()]
            while self._sign() == ",":
                self._advance()
                arguments.append(self._sum())
            self._expect(")")
            return _call(token["word"], arguments)
        following = self.text[self.position : self.position + 1]
        hint = f"to number a part, write {token['word']}[$rank]" if token["word"] and following in ("$", "(") else _AS_TEXT
        raise ExpressionError(f"'{self.shown}' is not an expression: '{token[0].strip()}' is out of place", hint)

    def _expect(self, sign: str) -> None:
        if self._sign() != sign:
            raise ExpressionError(f"'{self.shown}' is not an expression: '{sign}' is missing")
        self._advance()


_AS_TEXT: Final = "use a single $name or arithmetic; write $$ for a dollar sign"


def _number(digits: str, unit: str) -> Number:
    if unit:
        return parse(f"{digits} {unit}")
    if digits.isdigit():
        return int(digits) if len(digits) <= 40 else float(digits)
    return _sized(float(digits))


def _as_number(name: str, value: Value | Tree) -> Number:
    if isinstance(value, str):
        quantity = parse(value)
        return quantity if not quantity.dimension.plain or "%" in value else quantity.value
    if isinstance(value, (bool, Tree)):
        raise ExpressionError(f"'${name}' is not a number")
    return value


def _sized(value: Number) -> Number:
    """The value, converted to a number if it has no dimension; raise OverflowError if it is too large."""
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise OverflowError
        return value
    if not math.isfinite(value.value if isinstance(value, Quantity) else value):
        raise OverflowError
    return value.value if isinstance(value, Quantity) and value.dimension.plain else value


def _both_plain(sign: str, a: Number, b: Number) -> tuple[int | float, int | float]:
    if isinstance(a, Quantity) and isinstance(b, Quantity) and a.dimension.fits(b.dimension):
        return a.value, b.value
    if isinstance(a, Quantity) or isinstance(b, Quantity):
        raise ExpressionError(f"'{sign}' needs two numbers without units or with the same unit")
    return a, b


def _floor_divide(a: Number, b: Number) -> Number:
    x, y = _both_plain("//", a, b)
    return math.floor(x // y) if math.isfinite(x // y) else x // y


def _modulo(a: Number, b: Number) -> Number:
    x, y = _both_plain("mod", a, b)
    rest = x % y
    return Quantity(rest, a.dimension) if isinstance(a, Quantity) else rest


_OPERATORS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "//": _floor_divide,
    "%": _modulo,
}


def _call(name: str, arguments: list[Number]) -> Number:
    if name in ("min", "max"):
        best = arguments[0]
        for argument in arguments[1:]:
            less = argument - best
            smaller = (less.value if isinstance(less, Quantity) else less) < 0
            best = argument if smaller == (name == "min") else best
        return best
    if len(arguments) != 1 or isinstance(arguments[0], Quantity):
        raise ExpressionError(f"{name}() takes one number without a unit")
    value = arguments[0]
    return math.ceil(value) if name == "ceil" else math.floor(value) if name == "floor" else round(value)
