"""Translation of a `config.json` into the keys of a model.

The file is parsed as YAML, a superset of JSON, so that each mistake has a line and column. In multimodal configs, the language
model is in `text_config`; other parts are omitted, with a note.

**Source**: the configuration classes of transformers 5.23 (names and defaults of keys).
**Error**: none: parameter counts equal those of the transformers classes, for every family of `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hwsim.models.configs.config import Config, ConfigValue
from hwsim.models.configs.decoders import Keys
from hwsim.models.configs.families import FAMILIES, OUTSIDE
from hwsim.models.configs.quantization import BESIDE, merge_quant_config, quantised, refuse_alone
from hwsim.records import dataclass
from hwsim.spec.confined import refuse_outside
from hwsim.spec.mistakes import Mistakes, Place, SpecError, did_you_mean
from hwsim.spec.tree import Tree, tree_of
from hwsim.spec.yaml_parser import MAX_BYTES, read_bytes


@dataclass(frozen=True, slots=True)
class TranslatedConfig:
    """A config as a model.

    Args:
        keys: keys of the model, each with its origin.
        notes: omitted parts, as text.
        unknown: ignored keys that may matter.
        idle: ignored keys that no shape depends on.
    """

    name: str
    family: str
    keys: Mapping[str, ConfigValue]
    notes: tuple[str, ...]
    unknown: tuple[str, ...]
    idle: tuple[str, ...]
    place: Place
    kind: str = "transformer"


def read_config(path: Path) -> TranslatedConfig:
    """Return the config of a file.

    Raises:
        SpecError: the file cannot be read, or contains settings that a model does not support.
    """
    return translate_config(*config_tree(path))


def config_tree(path: Path) -> tuple[Tree, str]:
    """Return the content of a file, merged with an `hf_quant_config.json` in its folder, and a name for the model.

    Raises:
        SpecError: the file cannot be read.
    """
    tree = _content(path)
    refuse_alone(tree)
    beside = path.with_name(BESIDE)
    if path.name == "config.json" and tree.is_mapping and tree.get("hwsim") is None and beside.is_file():
        tree = merge_quant_config(tree, _content(beside))
    name = path.resolve().parent.name if path.stem == "config" else path.stem
    return tree, name or "model"


def _content(path: Path) -> Tree:
    refuse_outside(path, Place(str(path), 0, 0))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError.of(Place(str(path), 0, 0), f"the file cannot be read: {error.strerror or error}") from None
    return read_bytes(data.replace(b"\t", b" "), str(path))  # YAML indents with spaces, JSON with either


def translate_config(tree: Tree, name: str) -> TranslatedConfig:
    """Return the config of a tree; as `read_config`."""
    mistakes = Mistakes()
    inner, outer, notes = _language_config(tree, mistakes)
    family = inner.text("model_type") or ""
    if not mistakes and family not in FAMILIES:
        model_type = inner.get("model_type")
        place = tree.place if model_type is None else model_type.place
        if family in OUTSIDE:
            mistakes.add(place, f"'{family}' is not supported: it has {OUTSIDE[family]}")
        elif model_type is None:
            mistakes.add(place, "'model_type' (the model family) is missing", '"model_type": "llama"')
        else:
            near = did_you_mean(family, FAMILIES)
            mistakes.add(place, f"unknown model family '{family}'", near or f"one of {', '.join(sorted(FAMILIES))}")
    mistakes.raise_if_any()
    reader = FAMILIES[family]
    both = inner if outer is None else _merge(outer, inner)
    config = Config(both, family, mistakes, reader.defaults)
    keys: Keys = reader.read(config)
    narrow, assumed = quantised(config)
    if narrow is not None:
        keys["quantised"] = narrow
    notes += (*assumed, *_omitted_parts(config))
    mistakes.raise_if_any()
    rest = [key for key, value in both.items() if key not in config.used]
    idle = tuple(key for key in rest if is_idle(key))
    unknown = tuple(key for key in rest if not is_idle(key) and _has_value(both, key))
    silent = tuple(key for key in rest if key not in idle and key not in unknown)
    return TranslatedConfig(name, family, {key: value for key, value in keys.items() if value is not None}, notes, unknown,
                      (*idle, *silent), tree.place)  # fmt: skip


def as_tree(made: TranslatedConfig) -> Tree:
    """Return the model as a file's tree, with places in the config."""
    told = {
        "hwsim": ConfigValue("model/1", ""),
        "kind": ConfigValue(made.kind, ""),
        "name": ConfigValue(made.name, ""),
        **made.keys,
    }
    places = {key: value.place if value.place.file else made.place for key, value in told.items()}
    return Tree({key: tree_of(value.value, places[key]) for key, value in told.items()}, made.place, places)


def _merge(outer: Tree, inner: Tree) -> Tree:
    """Return the inner config, with the keys of the outer one that apply to both."""
    around = {key: value for key, value in outer.items() if key in ("tie_word_embeddings", "quantization_config")}
    places = {key: outer.key_place(key) for key in around}
    return Tree({**around, **dict(inner.items())}, inner.place, {**places, **inner.keys})


def _language_config(tree: Tree, mistakes: Mistakes) -> tuple[Tree, Tree | None, tuple[str, ...]]:
    """Return (config of the language model, config around it, notes)."""
    if not tree.is_mapping:
        mistakes.add(tree.place, f"config: expected a mapping, got {tree.what()}")
        return tree, None, ()
    inner = tree.get("text_config")
    if inner is None:
        return tree, None, ()
    if not inner.is_mapping:
        mistakes.add(inner.place, f"'text_config': expected a mapping, got {inner.what()}")
        return tree, None, ()
    if inner.get("model_type") is None:
        outer = tree.get("model_type")
        if outer is not None:
            inner = inner.put("model_type", outer)
    of_words = ("text_config", "quantization_config")
    towers = [key for key, value in tree.items() if key.endswith("_config") and key not in of_words and value.is_mapping]
    missing = f"; {', '.join(towers)} omitted" if towers else ""
    return inner, tree, (f"language model only (`text_config`){missing}",)


def _omitted_parts(config: Config) -> list[str]:
    notes = []
    predicted = config.count("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, minimum=0).value
    if predicted:
        notes.append(f"omitted: {predicted} layers of multi-token prediction (num_nextn_predict_layers)")
    return notes


def _has_value(tree: Tree, key: str) -> bool:
    """Return whether a key has a value that is not empty, zero or false."""
    found = tree.get(key)
    return found is not None and found.value not in (None, False, 0, "", 0.0)


NAMES: Final = frozenset({
    "activation_function", "apply_residual_connection_post_layernorm", "architectures", "attention_dropout",
    "attention_multiplier", "attention_probs_dropout_prob", "attention_scaling_factor", "attn_logit_softcapping",
    "attn_pdrop", "attn_scale", "attn_temperature_tuning", "auto_map", "aux_loss_alpha", "cache_implementation",
    "chunk_size_feed_forward", "classifier_dropout", "clip_qkv", "dtype", "embd_dropout", "embd_pdrop",
    "embedding_initializer_range", "embedding_multiplier", "encoder_stride", "ep_size", "feed_forward_proj",
    "final_logit_softcapping", "finetuning_task", "floor_scale", "for_llm_compressor", "gradient_checkpointing",
    "hidden_act", "hidden_activation", "id2label", "initial_context_length", "label2id", "layer_norm_epsilon",
    "logit_scale", "logits_scaling", "logits_to_keep", "masked_softmax_fusion", "max_length", "model_type",
    "moe_layer_id", "n_group", "n_positions_", "norm_eps", "norm_epsilon", "norm_topk_prob", "offset_alibi",
    "original_max_position_embeddings", "parallel_attn", "partial_rotary_factor", "pretraining_tp", "problem_type",
    "query_pre_attn_scalar", "reorder_and_upcast_attn", "resid_dropout", "resid_pdrop", "residual_multiplier",
    "return_dict", "rms_norm_eps", "rotary_dim", "rotary_emb_base", "rotary_pct", "routed_scaling_factor",
    "router_aux_loss_coef", "router_jitter_noise", "scoring_func", "seq_aux", "seq_length", "slow_but_exact",
    "swiglu_limit", "task_specific_params", "topk_group", "topk_method", "torch_dtype", "transformers_version",
    "unk_token_id", "use_bidirectional_attention", "use_cache", "use_parallel_residual", "use_return_dict",
})  # fmt: skip
STARTS: Final = (
    "_", "bos_token", "do_", "hidden_dropout", "init_", "initializer_", "is_", "layer_norm_eps", "output_", "pooler_",
    "qkv_bias_in_", "rope_", "scale_attn_", "skip_bias_add", "summary_", "swiglu_",
)  # fmt: skip
ENDS: Final = ("_token_id", "_token_ids", "_token_index", "_eps", "_theta", "dropout", "_token_id_list", "_prob")


def is_idle(key: str) -> bool:
    """Return whether no shape depends on a key.

    >>> is_idle("rope_theta"), is_idle("eos_token_id"), is_idle("hidden_size")
    (True, True, False)
    """
    return key in NAMES or key.startswith(STARTS) or key.endswith(ENDS)
