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
class Family:
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
FAMILIES: Final[Mapping[str, Family]] = {
    "bert": Family(encoders.bert),
    "bloom": Family(decoders.bloom, TIED),
    "deepseek_v2": Family(experts.deepseek),
    "deepseek_v3": Family(experts.deepseek),
    "deepseek_v32": Family(experts.deepseek),
    "gemma": Family(decoders.plain, {**TIED, "head_dim": 256}),
    "gemma2": Family(decoders.gemma2, {**TIED, "head_dim": 256, "sliding_window": 4096}),
    "gemma3_text": Family(decoders.gemma3, GEMMA3),
    "gemma4_text": Family(decoders.gemma4, {**TIED, "head_dim": 256, "sliding_window": 512, "global_head_dim": 512}),
    "glm4_moe": Family(experts.glm4_moe, {"head_dim": None}),
    "gpt2": Family(decoders.gpt2, TIED),
    "gpt_neox": Family(decoders.gpt_neox),
    "gpt_oss": Family(experts.gpt_oss, {"head_dim": 64, "sliding_window": 128}),
    "gptj": Family(decoders.gptj),
    "granite": Family(decoders.llama),
    "kimi_k2": Family(experts.deepseek),
    "llama": Family(decoders.llama),
    "llama4_text": Family(experts.llama4, {"head_dim": 128, "attention_chunk_size": 8192}),
    "minimax_m2": Family(experts.minimax_m2, {"head_dim": 128}),
    "mistral": Family(decoders.mistral),
    "mixtral": Family(experts.mixtral),
    "olmo2": Family(decoders.olmo2),
    "olmo3": Family(decoders.olmo2, {"sliding_window": 4096}),
    "olmoe": Family(experts.olmoe),
    "opt": Family(decoders.opt, TIED),
    "phi": Family(decoders.phi),
    "phi3": Family(decoders.mistral),
    "qwen2": Family(decoders.qwen2),
    "qwen2_moe": Family(experts.qwen2_moe),
    "qwen3": Family(decoders.qwen3, {"head_dim": 128}),
    "qwen3_moe": Family(experts.qwen3_moe),
    "roberta": Family(encoders.bert),
    "starcoder2": Family(decoders.starcoder2, TIED),
    "vit": Family(encoders.vit),
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
