"""Parser: YAML -> Tree, with positions and limits, for the core schema of YAML 1.2 without tags.

Plain scalars: `true`/`false`, `null`/`~`/nothing, whole numbers (`8`, `-3`, `0x1F`, `0o17`) and floats (`1.5`, `1e9`).
All other scalars are texts: `on`, `no`, `12:30`, `2024-01-01`, `1_000`, and `017`, which is 15 in YAML 1.1 and 17 in YAML 1.2.
Mistakes: `.nan`, `.inf`, tags, merge keys, keys that are not texts, duplicate keys, and a second document.

A document is parsed event by event, so that its depth is checked before any recursion.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from hwsim.spec.confined import refuse_outside
from hwsim.spec.memo import memo_table
from hwsim.spec.mistakes import Mistake, Mistakes, Place, SourceText, SpecError
from hwsim.spec.tree import DIGITS, MAX_DEPTH, UNPRINTABLE, Tree

MAX_BYTES: Final = 20_000_000
MAX_NODES: Final = 1_000_000

_LARGE: Final = "use `repeat` and `each`; for ops that all differ, use an op graph: hwsim.save_graph, graph.npz"

_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NO_KEYS: Final[dict[str, Place]] = {}  # keys of every scalar
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path | str) -> Tree:
    """Return the tree of a file, of standard input (`-`), or of a text with a line break.

    Raises:
        SpecError: the file does not exist, is not YAML, or exceeds a limit.
    """
    if isinstance(path, str) and ("\n" in path or "\r" in path):
        return read_text(path)
    name = str(path)
    shared: dict[str, Tree] | None = memo_table("files")
    if shared is not None and name in shared:
        return shared[name]
    try:
        if name == "-":
            if sys.stdin is None:
                raise SpecError.of(Place("<stdin>", 0, 0), "standard input is closed")
            return read_bytes(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>")
        refuse_outside(name, Place(name, 0, 0))
        with Path(path).open("rb") as file:
            tree = read_bytes(file.read(MAX_BYTES + 1), name)
        if shared is not None:
            shared[name] = tree
        return tree
    except FileNotFoundError:
        raise SpecError.of(Place(name, 0, 0), "the file does not exist") from None
    except IsADirectoryError:
        raise SpecError.of(Place(name, 0, 0), "expected a file, got a directory") from None
    except (OSError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError.of(Place(name, 0, 0), f"the file cannot be read: {error}") from None


def read_bytes(data: bytes, file: str) -> Tree:
    """Return the tree of a document in UTF-8, with or without a byte order mark; raise SpecError."""
    if len(data) > MAX_BYTES:
        raise SpecError.of(Place(file, 0, 0), f"the file is larger than {MAX_BYTES // 1_000_000} MB", _LARGE)
    if data[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        raise SpecError.of(Place(file, 1, 1), "the file is UTF-32", "save it as UTF-8")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SpecError.of(Place(file, 1, 1), "the file is UTF-16", "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise SpecError.of(Place(file, line, column), message, "save the file as UTF-8") from None
    return read_text(text, file)


def read_text(text: str, file: str = "<text>") -> Tree:
    """Return the tree of a text; raise SpecError."""
    text = text.removeprefix("\ufeff")
    source = SourceText(file, text)
    if len(text) > MAX_BYTES:
        raise SpecError.of(Place(file, 0, 0), f"the text is longer than {MAX_BYTES // 1_000_000} MB", _LARGE)
    if bad := UNPRINTABLE.search(text):
        before = text[: bad.start()]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        message = "a NUL byte" if bad[0] == "\0" else f"the control character U+{ord(bad[0]):04X}"
        raise SpecError.of(Place(file, line, column), f"{message} does not belong in a text file")
    reader = _YamlParser(source)
    try:
        tree = reader.run(_LOADER(text))
    except yaml.MarkedYAMLError as error:
        reader.mistakes.extend([_syntax(error, source)])
        tree = None
    except yaml.YAMLError as error:
        reader.mistakes.add(Place(file, 0, 0), f"this is not YAML: {' '.join(str(error).split())}")
        tree = None
    reader.mistakes.raise_if_any()
    if tree is None:
        raise SpecError.of(Place(file, 1, 1, source), "the file is empty", "begin with the format, such as 'hwsim: machine/1'")
    return tree


class _Stop(Exception):
    """A signal that parsing stops after a mistake was added."""


class _YamlParser:
    """A parser of the events of a document, with an explicit stack of open containers."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.mistakes = Mistakes()
        self.anchors: dict[str, tuple[Tree, int, int]] = {}  # tree, number of nodes and depth with aliases expanded
        self.open_anchors: list[str] = []
        self.nodes = 0

    def place(self, mark: Any) -> Place:
        return Place(self.source.file, mark.line + 1, mark.column + 1, self.source)

    def run(self, loader: Any) -> Tree | None:
        try:
            return self._document(loader)
        except _Stop:
            return None
        finally:
            loader.dispose()

    def _stop(self, mark: Any, message: str, hint: str | None = None) -> _Stop:
        self.mistakes.add(self.place(mark), message, hint)
        return _Stop()

    def _document(self, loader: Any) -> Tree | None:
        root: Tree | None = None
        documents = 0
        stack: list[_OpenContainer] = []
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                done, nodes, depth = self._scalar(event), 1, 0
                self.nodes += 1
            elif kind in _BEGINS:
                self._refuse_tag(event)
                if len(stack) >= MAX_DEPTH:
                    raise self._stop(event.start_mark, f"nested more than {MAX_DEPTH} levels deep")
                self.nodes += 1
                stack.append(
                    _OpenContainer(kind is yaml.MappingStartEvent, self.place(event.start_mark), event.anchor, self.nodes)
                )
                if event.anchor:
                    self.open_anchors.append(event.anchor)
                    self.anchors.pop(event.anchor, None)
                continue
            elif kind in _ENDS:
                top = stack.pop()
                done, nodes, depth = top.tree(), self.nodes - top.started + 1, top.depth
                if top.anchor:
                    self.open_anchors.remove(top.anchor)
            elif kind is yaml.AliasEvent:
                if event.anchor in self.open_anchors:
                    raise self._stop(event.start_mark, f"the alias '*{event.anchor}' is inside its own anchor")
                if event.anchor not in self.anchors:
                    raise self._stop(event.start_mark, f"there is no anchor '&{event.anchor}' before this alias", _STAR)
                done, nodes, depth = self.anchors[event.anchor]
                self.nodes += nodes
                if len(stack) + depth > MAX_DEPTH:
                    raise self._stop(event.start_mark, f"nested more than {MAX_DEPTH} levels deep")
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    message = "expected one document, but a second document begins here"
                    raise self._stop(event.start_mark, message, "move it to another file")
                continue
            elif kind is yaml.StreamEndEvent:
                return root
            else:
                continue
            if self.nodes > MAX_NODES:
                raise self._stop(event.start_mark, f"more than {MAX_NODES:,} values with aliases expanded", _LARGE)
            anchor = top.anchor if kind in _ENDS else event.anchor
            if anchor and kind is not yaml.AliasEvent:
                self.anchors[anchor] = done, nodes, depth
            if stack:
                parent = stack[-1]
                self._put(parent, done, event)
                if parent.depth <= depth:
                    parent.depth = depth + 1
            else:
                root = done

    def _put(self, parent: _OpenContainer, done: Tree, event: Any) -> None:
        """Add a complete node to its container."""
        if not parent.mapping:
            parent.elements.append(done)
        elif parent.has_key:
            parent.has_key = False
            if parent.key is not None:
                parent.entries[parent.key] = done
                parent.places[parent.key] = parent.key_place
        else:
            parent.has_key, parent.key, parent.key_place = True, None, done.place
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
                self.mistakes.add(done.place, "merge keys ('<<') are not supported", "write `use: FILE`, or repeat the keys")
            elif not isinstance(done.value, str):
                hint = f"write '{event.value}' in quotes" if isinstance(event, yaml.ScalarEvent) and event.value else None
                self.mistakes.add(done.place, f"expected a text as key, got {done.what()}", hint)
            elif done.value in parent.entries:
                first = parent.places[done.value]
                self.mistakes.add(done.place, f"duplicate key '{done.value}' (first in line {first.line})")
            else:
                parent.key = done.value

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.mistakes.add(self.place(event.start_mark), f"tags are not supported: '{tag[:40]}'", "write only the value")

    def _scalar(self, event: Any) -> Tree:
        place = self.place(event.start_mark)
        if event.tag is not None:
            self._refuse_tag(event)
        text: str = event.value
        if event.style:  # quoted or a block: always a text
            if bad := UNPRINTABLE.search(text):  # an escape such as "\e]0;" would control the terminal
                self.mistakes.add(place, f"the control character U+{ord(bad[0]):04X} does not belong in a text")
            return Tree(text, place, _NO_KEYS)
        return Tree(self._resolve(text, place), place, _NO_KEYS)

    def _resolve(self, text: str, place: Place) -> str | int | float | bool | None:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in "0123456789.+-":
            return text
        if _INT.fullmatch(text):
            if len(text) <= DIGITS:
                return int(text, 0)
            self.mistakes.add(place, f"the number has more than {DIGITS} digits")
        elif _FLOAT.fullmatch(text):
            value = float(text)
            if abs(value) != float("inf"):
                return value
            self.mistakes.add(place, f"{text[:40]} is too large to be a number")
        elif _NOT_FINITE.fullmatch(text):
            self.mistakes.add(place, f"{text} is not a finite number")
        return text


def is_text(text: str) -> bool:
    """Return whether a scalar without quotes is this text, not a number or constant.

    >>> [is_text(each) for each in ("gpu0", "16 GB/s", "2024", "1e3", "null")]
    [True, True, False, False, False]
    """
    return text not in _CONSTANTS and not any(kind.fullmatch(text) for kind in (_INT, _FLOAT, _NOT_FINITE))


_BEGINS: Final = frozenset({yaml.MappingStartEvent, yaml.SequenceStartEvent})
_ENDS: Final = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


class _OpenContainer:
    """A container whose end is not yet parsed."""

    __slots__ = ("anchor", "depth", "elements", "entries", "has_key", "key", "key_place", "mapping", "place", "places", "started")

    def __init__(self, mapping: bool, place: Place, anchor: str | None, started: int) -> None:
        self.mapping, self.place, self.anchor, self.started, self.depth = mapping, place, anchor, started, 0
        self.entries: dict[str, Tree] = {}
        self.places: dict[str, Place] = {}
        self.elements: list[Tree] = []
        self.has_key = False
        self.key: str | None = None
        self.key_place = place

    def tree(self) -> Tree:
        return Tree(self.entries, self.place, self.places) if self.mapping else Tree(self.elements, self.place, _NO_KEYS)


# ---- messages of libyaml ----

_STAR: Final = "put a text that begins with * in quotes; gpu* needs none"


def _syntax(error: yaml.MarkedYAMLError, source: SourceText) -> Mistake:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    text = source.line(line)
    rest = text[column - 1 :]
    problem = " ".join(str(error.problem or error.context or "unreadable").split())
    hint = None
    if "nesting depth" in problem:  # libyaml 0.2.6 has its own limit and look-ahead
        return Mistake(Place(source.file, line, column, source), f"nested more than {MAX_DEPTH} levels deep")
    if "\t" in text[: len(text) - len(text.lstrip())] or rest.startswith("\t"):
        problem, hint = "a tab in the indentation", "indent with spaces"
    elif "alias" in problem or "alias" in str(error.context or "") or rest.startswith("*"):
        hint = _STAR
    elif rest[:1] in ("%", "@", "`"):
        problem, hint = f"a text cannot begin with '{rest[0]}'", "put it in quotes"
    elif "mapping values are not allowed" in problem:
        problem = "unexpected ':'"
        hint = "check that the previous line is complete and the indentation is consistent; a text with ': ' needs quotes"
    elif "expected ',' or" in problem:
        hint = "a bracket or a comma is missing; inside [ ] and { } a text with , [ ] { } needs quotes"
    elif "tag handle" in problem or rest.startswith("!"):
        problem, hint = "tags are not supported", "a text that begins with '!' needs quotes"
    elif "could not find expected ':'" in problem:
        hint = "a key is followed by ': '"
    elif "block end" in problem or "expected <block end>" in problem or "did not find expected key" in problem:
        hint = "indent the line like its neighbours"
    return Mistake(Place(source.file, line, column, source), f"this is not YAML: {problem}", hint)
