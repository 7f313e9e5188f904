"""Modules that a quantised checkpoint leaves in 16 bits: which part of a model's linear maps is narrow.

Names are of checkpoints (`model.layers.3.self_attn*`); heads, embeddings, norms, routers, indexers, towers of images and layers
behind the last one are in 16 bits in a model anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Part = Literal["attention", "shared", "experts", "ffn", "layer", "none", "unknown"]
_LAYER: Final = re.compile(r"layers\.(\d+)")
_NONE: Final = re.compile(
    r"head$|lm_head|embed|norm|router|gate$|gate\b(?!_proj)|indexer|mtp|visi|visual|projector|patch_merge|eh_proj"
)


class Narrow(NamedTuple):
    """Which linear maps are narrow, None where a model cannot say it; notes: where that is more or fewer than the file says."""

    of: Literal["linear", "experts"] | None
    notes: tuple[str, ...]


def narrow_part(excluded: Sequence[str], layers: int, *, experts: bool, mlp_is_shared: bool = False) -> Narrow:
    """The part that is narrow where modules with these names are not.

    Args:
        excluded: names with wildcards; layers: of the model.
        experts: there are some; mlp_is_shared: `mlp` is a network that all tokens pass, too (Gemma 4).

    >>> narrow_part(["lm_head", "model.layers.0.mlp.gate"], 1, experts=True)
    Narrow(of='linear', notes=())
    >>> narrow_part(["model.layers.0.self_attn*", "model.layers.0.mlp.shared_experts*"], 1, experts=True)
    Narrow(of='experts', notes=())
    >>> narrow_part(["*.self_attn*"], 4, experts=False).of is None
    True
    """
    layers_of: dict[Part, set[int]] = {}
    for name in excluded:
        part = _part(name, mlp_is_shared=mlp_is_shared)
        place = _LAYER.search(name)
        if place is None:
            layers_of.setdefault(part, set()).update(range(layers))
        elif int(place[1]) < layers:
            layers_of.setdefault(part, set()).add(int(place[1]))
    notes = []
    if "unknown" in layers_of:
        strange = [name for name in excluded if _part(name, mlp_is_shared=mlp_is_shared) == "unknown"]
        notes.append(f"modules in 16 bits that are not heeded: {_some(strange)}")
    in_full = layers_of.pop("layer", set())
    if len(in_full) > max(3, layers // 8) or layers_of.keys() & {"experts", "ffn"}:
        return Narrow(None, ())
    attention, shared = (2 * len(layers_of.get(part, ())) > layers for part in ("attention", "shared"))
    if attention and not experts:
        return Narrow(None, ())
    if attention or shared:
        partly = any(name.rstrip("*").endswith(("_proj", "_mqa")) for name in excluded if "attn" in name)
        if not (attention and shared) or partly:
            notes.append("assumed: all linear maps but those of experts in 16 bits; the file leaves only some of them so")
        return Narrow("experts", tuple(notes))
    if in_full and not experts:
        notes.append(f"layers in 16 bits in the file, narrow here: {', '.join(map(str, sorted(in_full)))}")
    elif any(layers_of.get(part) for part in ("attention", "shared")):
        notes.append("assumed: all layers alike; in the file attention of fewer than half of them is in 16 bits")
    return Narrow("linear", tuple(notes))


def _part(name: str, *, mlp_is_shared: bool) -> Part:
    """
    >>> [_part(name, mlp_is_shared=False) for name in ("layers.0.self_attn*", "model.layers.3*", "re:.*lm_head", "conv1d")]
    ['attention', 'layer', 'none', 'unknown']
    """
    plain = name.removeprefix("re:").rstrip("*.$").lower()
    if re.search(r"layers\.\d+$", plain):
        return "layer"
    if _NONE.search(plain):
        return "none"
    if "attn" in plain or "attention" in plain:
        return "attention"
    if "shared" in plain:
        return "shared"
    if "experts" in plain:
        return "experts"
    if re.search(r"\b(mlp|ffn|feed_forward)\b", plain):
        return "shared" if mlp_is_shared else "ffn"
    return "unknown"


def _some(names: Sequence[str], most: int = 4) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
