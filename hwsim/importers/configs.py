"""The result of `hwsim import huggingface` as JSON document and text.

`hwsim.models.configs` reads the config, so that the `model:` of a workload can name one, too.
"""

from __future__ import annotations

from typing import Any

from hwsim.models.architectures import Model
from hwsim.models.configs import TranslatedConfig
from hwsim.models.library import describe_model


def as_dict(made: TranslatedConfig, model: Model) -> dict[str, Any]:
    """Return the document `hwsim: imported-model/1`."""
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


def lines(made: TranslatedConfig, model: Model) -> list[str]:
    """Return the lines on the model and on ignored keys."""
    output = [f"{made.name}, {made.family}", *(f"  {line}" for line in describe_model(model))]
    output += [f"  {note}" for note in made.notes]
    if made.unknown:
        output.append(f"  unknown keys, ignored: {', '.join(made.unknown)}")
    if made.idle:
        output.append(f"  keys without effect on shapes, ignored: {len(made.idle)}")
    return output
