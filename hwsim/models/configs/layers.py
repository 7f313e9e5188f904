"""Layers of a config: which of them have experts, and which see a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwsim.models.architectures.layer_parts import runs_of
from hwsim.models.configs.config import Config, Told

Each = dict[str, Any]  # keys of a run
WINDOWED: Final = ("sliding_attention", "chunked_attention")


def put(keys: dict[str, Told | None], layers: Sequence[Mapping[str, Any]], origin: str) -> None:
    """Layers that may differ, as keys of the model where all are alike, else as runs."""
    kinds: list[Mapping[str, Any]] = []
    for layer in layers:
        if layer not in kinds:
            kinds.append(layer)
    if len(kinds) == 1:
        keys.update({key: Told(value, origin) for key, value in kinds[0].items() if (key, value) != ("window", 0)})
        return
    runs, _ = runs_of([kinds.index(one) for one in layers])
    stated = {key: value.value for key, value in keys.items() if value is not None}
    keys["runs"] = Told([{"layers": many, **_other(kinds[kind], stated)} for kind, many in runs], origin)


def _other(run: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a run that differ from the model's."""
    return {key: value for key, value in run.items() if model.get(key, 0 if key in ("window", "shared") else None) != value}


def windows(config: Config, layers: int, window: str, types: Sequence[str]) -> tuple[list[Each], str]:
    """The window of each layer (0: all tokens), and the keys that say so.

    Args:
        window: key of its width.
        types: kinds of the layers, where the config does not list them.
    """
    width = config.count(window, default=0, minimum=0)
    listed = config.listed("layer_types", str, layers)
    named: Sequence[str] = types if listed is None else listed.value
    strange = next((each for each in named if each not in (*WINDOWED, "full_attention")), None)
    if strange is not None:
        config.refuse("layer_types", f"unsupported attention type '{strange}': expected full or sliding attention")
        return [{}] * layers, "layer_types"
    if not width.value:
        return [{}] * layers, window
    return [{"window": width.value if each in WINDOWED else 0} for each in named], f"{window}, layer_types"


def every(layers: int, step: int, rest: str = "sliding_attention") -> list[str]:
    """Kinds of layers where each `step`-th sees all tokens.

    >>> every(4, 2)
    ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention']
    """
    return ["full_attention" if (index + 1) % step == 0 else rest for index in range(layers)]


def joined(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[Each]:
    """Both sayings about each layer."""
    return [{**one, **other} for one, other in zip(first, second, strict=True)]
