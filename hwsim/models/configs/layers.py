"""Layers of a config: which have experts, and which have a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwsim.models.architectures.layer_parts import runs_of
from hwsim.models.configs.config import Config, ConfigValue

RunKeys = dict[str, Any]  # keys of a run
WINDOWED: Final = ("sliding_attention", "chunked_attention")


def set_layer_keys(keys: dict[str, ConfigValue | None], layers: Sequence[Mapping[str, Any]], origin: str) -> None:
    """Set keys of layers: as keys of the model if all layers are equal, else as runs."""
    kinds: list[Mapping[str, Any]] = []
    for layer in layers:
        if layer not in kinds:
            kinds.append(layer)
    if len(kinds) == 1:
        keys.update({key: ConfigValue(value, origin) for key, value in kinds[0].items() if (key, value) != ("window", 0)})
        return
    runs, _ = runs_of([kinds.index(layer) for layer in layers])
    stated = {key: value.value for key, value in keys.items() if value is not None}
    keys["runs"] = ConfigValue([{"layers": count, **_differing_keys(kinds[kind], stated)} for kind, count in runs], origin)


def _differing_keys(run: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a run that differ from the model's."""
    return {key: value for key, value in run.items() if model.get(key, 0 if key in ("window", "shared") else None) != value}


def windows(config: Config, layers: int, window: str, types: Sequence[str]) -> tuple[list[RunKeys], str]:
    """Return the window of each layer (0: all tokens), and the keys that determine it.

    Args:
        window: key of the window width.
        types: layer types, if the config does not list them.
    """
    width = config.count(window, default=0, minimum=0)
    listed = config.listed("layer_types", str, layers)
    named: Sequence[str] = types if listed is None else listed.value
    strange = next((layer_type for layer_type in named if layer_type not in (*WINDOWED, "full_attention")), None)
    if strange is not None:
        config.refuse("layer_types", f"unsupported attention type '{strange}': expected full or sliding attention")
        return [{}] * layers, "layer_types"
    if not width.value:
        return [{}] * layers, window
    return [{"window": width.value if layer_type in WINDOWED else 0} for layer_type in named], f"{window}, layer_types"


def alternating_layer_types(layers: int, step: int, rest: str = "sliding_attention") -> list[str]:
    """Return the layer types if each `step`-th layer has full attention.

    >>> alternating_layer_types(4, 2)
    ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention']
    """
    return ["full_attention" if (index + 1) % step == 0 else rest for index in range(layers)]


def merge_layer_keys(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[RunKeys]:
    """Return the keys of both lists, merged layer by layer."""
    return [{**layer, **more} for layer, more in zip(first, second, strict=True)]
