"""Configs of Hugging Face as models: the document and the lines of what was read.

Configs are read in `hwsim.models.configs`, so that the `model:` of a workload may name one.
"""

from __future__ import annotations

from typing import Any

from hwsim.models.architectures import Model
from hwsim.models.configs import Translated
from hwsim.models.library import described


def as_dict(made: Translated, model: Model) -> dict[str, Any]:
    """The document `hwsim: imported-model/1`."""
    return {
        "hwsim": "imported-model/1",
        "format": "huggingface",
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
