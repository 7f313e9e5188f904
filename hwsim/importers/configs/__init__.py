"""Files of models of other tools: a config of Hugging Face. A new format is a module and a line here.

Configs are read in `hwsim.models.configs`, so that the `model:` of a workload may name one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from hwsim.models.architectures import Model
from hwsim.models.configs import Translated, as_tree, written
from hwsim.models.library import described, read_model


class Format(NamedTuple):
    """A format: the function that reads its files (module:name), and what it is in words."""

    reader: str
    words: str


FORMATS: Final[Mapping[str, Format]] = {
    "huggingface": Format("hwsim.models.configs:read_config", "config of Hugging Face"),
}


def read_file(name: str, path: Path) -> tuple[Translated, Model]:
    """The keys that a file states, and its model.

    Raises:
        SpecError: it cannot be read, or says what a model cannot.
    """
    module, _, function = FORMATS[name].reader.partition(":")
    made: Translated = getattr(import_module(module), function)(path)
    return made, read_model(as_tree(made))


def text_of(name: str, path: Path, made: Translated) -> str:
    """The file `model/1`."""
    return written(made, f"{FORMATS[name].words}, {path.name}")


def as_dict(name: str, made: Translated, model: Model) -> dict[str, Any]:
    """The document `hwsim: imported-model/1`."""
    return {
        "hwsim": "imported-model/1",
        "format": name,
        "family": made.family,
        "name": made.name,
        "parameters": model.parameters,
        "model": {"kind": made.kind, **{key: value.value for key, value in made.keys.items()}},
        "origins": {key: value.origin for key, value in made.keys.items()},
        "notes": list(made.notes),
        "not_heeded": list(made.unknown),
        "not_used": list(made.idle),
    }


def lines(made: Translated, model: Model) -> list[str]:
    """The model in words, and what was left out of the file."""
    output = [f"{made.name}, {made.family}", *(f"  {line}" for line in described(model))]
    output += [f"  {note}" for note in made.notes]
    if made.unknown:
        output.append(f"  not known here, and not heeded: {', '.join(made.unknown)}")
    if made.idle:
        output.append(f"  not used, for no shape depends on them: {len(made.idle)} keys")
    return output
