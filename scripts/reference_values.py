"""A key of a schema as a row of a table: its value in words with a link to the keys inside, its default, what it means."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Final, get_args, get_origin

from hwsim.spec import FieldPlan, Tree, plan
from hwsim.spec.decode import title
from hwsim.units import Dimension
from scripts.reference_sections import SEE, SEE_BY_KEY

_LINK: Final = re.compile(r"\{(\w+)\|([^}]+)\}")
_TREE: Final = "<tree>"  # a value that its reader interprets: see `SEE`


class Values:
    """Words of keys, with links to the tables under these headings."""

    def __init__(self, headings: Mapping[type, str]) -> None:
        self._headings = headings
        self._by_name = {cls.__name__: heading for cls, heading in headings.items()}

    def row(self, cls: type, each: FieldPlan) -> str:
        """A row of the table of a schema."""
        default = "required" if each.required else _default(each.default)
        meaning = each.doc + (f"; example: `{each.example}`" if each.example else "")
        value = ", ".join(f"`{choice}`" for choice in each.bounds.choices or () if choice) or self._value(each.annotation)
        if _TREE in value:
            value = value.replace(_TREE, self._seen(cls, each.key))
        recorded = f"; *recorded only*: {each.record}" if each.record else ""
        return f"| `{each.key}` | {value} | {default} | {meaning}{recorded} |"

    def _seen(self, cls: type, key: str) -> str:
        """What the reader of a file finds there, with links.

        Raises:
            KeyError: `scripts/reference_sections.py` does not say it.
        """
        words = next((SEE[base, key] for base in cls.__mro__ if (base, key) in SEE), None) or SEE_BY_KEY[key]
        return _LINK.sub(lambda link: f"[{link[2]}](#{anchor(self._by_name[link[1]])})", words)

    def _value(self, annotation: Any) -> str:
        """A type in words."""
        if get_origin(annotation) is Annotated:
            dimension = next((note for note in annotation.__metadata__ if isinstance(note, Dimension)), None)
            return dimension.name if dimension else self._value(get_args(annotation)[0])
        arguments = [argument_type for argument_type in get_args(annotation) if argument_type not in (type(None), Ellipsis)]
        if annotation is Tree:
            return _TREE
        if annotation is Any:
            return "any value"
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            return self._mapping(annotation)
        if not arguments:
            return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "any value")
        if all(isinstance(argument, str) for argument in arguments):
            return ", ".join(f"`{literal}`" for literal in arguments if literal)
        origin = getattr(get_origin(annotation), "__name__", "")
        words = list(dict.fromkeys(self._value(argument_type) for argument_type in arguments))
        if origin == "tuple":
            return "list of " + " or ".join(words)
        return f"mapping of names to {words[-1]}" if origin == "Mapping" else " or ".join(words)

    def _mapping(self, cls: type) -> str:
        """Where the keys of a mapping are: in a table among the files, or in one of its own."""
        if cls in self._headings:
            words = f"part `{title(cls)}`" if hasattr(cls, "kind") else "its keys"
            return f"mapping, {'as' if hasattr(cls, 'kind') else 'see'} [{words}](#{anchor(self._headings[cls])})"
        return f"mapping, see [{title(cls)}](#mapping-{title(cls).replace(' ', '-')})" if plan(cls) else "mapping"


def documented(each: FieldPlan, once: Collection[str]) -> bool:
    """Whether a key says no more than what is said once of all keys of that name."""
    return each.key in once and (each.key == "hwsim" or bool(each.record))


def classes(fields: Iterable[FieldPlan]) -> list[type]:
    """The mappings that values of these fields are, those that are no part of their own."""
    found: list[type] = []

    def look(annotation: Any) -> None:
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            if annotation not in (Tree, Dimension) and not hasattr(annotation, "kind"):
                found.append(annotation)
        elif get_origin(annotation) is Annotated:
            look(get_args(annotation)[0])
        else:
            for argument_type in get_args(annotation):
                look(argument_type)

    for field in fields:
        look(field.annotation)
    return found


def _default(default: Any) -> str:
    if default is dataclasses.MISSING or default is None or default in ("", ()) or dataclasses.is_dataclass(default):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def anchor(heading: str) -> str:
    """Of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
