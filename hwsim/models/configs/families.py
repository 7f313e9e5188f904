"""Config families: `model_type` -> reader. A new family is a function in this package, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from hwsim.models.configs import decoders, encoders, experts
from hwsim.models.configs.config import Config
from hwsim.models.configs.decoders import Keys
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class ConfigFamily:
    """A family of models.

    Args:
        read: function from a config to the keys of a model.
        defaults: values of keys that the configs omit, as in the family's transformers class.
    """

    read: Callable[[Config], Keys]
    defaults: Mapping[str, Any] = field(default_factory=dict)


TIED: Final = {"tie_word_embeddings": True}
GEMMA3: Final = {**TIED, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
                 "max_position_embeddings": 131072, "sliding_window": 4096}  # fmt: skip
FAMILIES: Final[Mapping[str, ConfigFamily]] = {
    "bert": ConfigFamily(encoders.bert),
    "bloom": ConfigFamily(decoders.bloom, TIED),
    "deepseek_v2": ConfigFamily(experts.deepseek),
    "deepseek_v3": ConfigFamily(experts.deepseek),
    "deepseek_v32": ConfigFamily(experts.deepseek),
    "gemma": ConfigFamily(decoders.plain, {**TIED, "head_dim": 256}),
    "gemma2": ConfigFamily(decoders.gemma2, {**TIED, "head_dim": 256, "sliding_window": 4096}),
    "gemma3_text": ConfigFamily(decoders.gemma3, GEMMA3),
    "gemma4_text": ConfigFamily(decoders.gemma4, {**TIED, "head_dim": 256, "sliding_window": 512, "global_head_dim": 512}),
    "glm4_moe": ConfigFamily(experts.glm4_moe, {"head_dim": None}),
    "gpt2": ConfigFamily(decoders.gpt2, TIED),
    "gpt_neox": ConfigFamily(decoders.gpt_neox),
    "gpt_oss": ConfigFamily(experts.gpt_oss, {"head_dim": 64, "sliding_window": 128}),
    "gptj": ConfigFamily(decoders.gptj),
    "granite": ConfigFamily(decoders.llama),
    "kimi_k2": ConfigFamily(experts.deepseek),
    "llama": ConfigFamily(decoders.llama),
    "llama4_text": ConfigFamily(experts.llama4, {"head_dim": 128, "attention_chunk_size": 8192}),
    "minimax_m2": ConfigFamily(experts.minimax_m2, {"head_dim": 128}),
    "mistral": ConfigFamily(decoders.mistral),
    "mixtral": ConfigFamily(experts.mixtral),
    "olmo2": ConfigFamily(decoders.olmo2),
    "olmo3": ConfigFamily(decoders.olmo2, {"sliding_window": 4096}),
    "olmoe": ConfigFamily(experts.olmoe),
    "opt": ConfigFamily(decoders.opt, TIED),
    "phi": ConfigFamily(decoders.phi),
    "phi3": ConfigFamily(decoders.mistral),
    "qwen2": ConfigFamily(decoders.qwen2),
    "qwen2_moe": ConfigFamily(experts.qwen2_moe),
    "qwen3": ConfigFamily(decoders.qwen3, {"head_dim": 128}),
    "qwen3_moe": ConfigFamily(experts.qwen3_moe),
    "roberta": ConfigFamily(encoders.bert),
    "starcoder2": ConfigFamily(decoders.starcoder2, TIED),
    "vit": ConfigFamily(encoders.vit),
}
PAIR: Final = "a decoder with cross-attention to an encoder"
STATES: Final = "state-space layers (Mamba) instead of attention"
DELTA: Final = "linear attention (gated DeltaNet, a state per head instead of keys and values) in most layers"
OUTSIDE: Final[Mapping[str, str]] = {  # known families with unsupported layers
    "bart": PAIR,
    "falcon_mamba": STATES,
    "gemma3n": "per-layer input embeddings and layers that share keys and values",
    "jamba": STATES,
    "kimi_linear": DELTA.replace("gated DeltaNet", "Kimi Delta Attention"),
    "mamba": STATES,
    "mamba2": STATES,
    "mbart": PAIR,
    "nemotron_h": STATES,
    "qwen3_5_moe_text": DELTA,
    "qwen3_5_text": DELTA,
    "qwen3_next": DELTA,
    "t5": PAIR,
    "t5gemma": PAIR,
    "whisper": PAIR,
}
