"""A `config.json` becomes the keys of a model.

The file is read as YAML, which JSON is, so that each mistake has its line and column. The language model of a config with
images or sound is in `text_config`; the rest is left out, and said to be.

**Source**: the configuration classes of transformers 5.23 (names of keys, and what is taken where one is left out).
**Error**: none: parameters are those of the classes of transformers, to the last one, for every family of `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hwsim.models.configs.config import Config, Told
from hwsim.models.configs.families import FAMILIES, OUTSIDE, Keys
from hwsim.models.configs.quantisation import quantised
from hwsim.records import dataclass
from hwsim.spec.mistakes import Mistake, Mistakes, Place, SpecError, did_you_mean
from hwsim.spec.reading import MAX_BYTES, read_bytes
from hwsim.spec.tree import Tree, tree_of

# Keys that no shape depends on, by their beginnings or ends; whole names are meant with a $.
IDLE: Final = (
    "_", "architectures$", "auto_map$", "torch_dtype$", "dtype$", "transformers_version$", "model_type$", "use_cache$",
    "initializer_", "init_", "rope_", "partial_rotary_factor$", "rotary_pct$", "rotary_emb_base$", "rotary_dim$", "attn_scale$",
    "attention_dropout$", "hidden_dropout", "attn_pdrop$", "embd_pdrop$", "resid_pdrop$", "resid_dropout$", "embd_dropout$",
    "attention_probs_dropout_prob$", "classifier_dropout$", "hidden_act$", "hidden_activation$", "activation_function$",
    "feed_forward_proj$", "layer_norm_eps", "layer_norm_epsilon$", "rms_norm_eps$", "norm_eps$", "norm_epsilon$",
    "task_specific_params$", "summary_", "id2label$", "label2id$", "problem_type$", "output_", "return_dict$", "pretraining_tp$",
    "router_aux_loss_coef$", "router_jitter_noise$", "aux_loss_alpha$", "seq_aux$", "norm_topk_prob$", "scoring_func$",
    "routed_scaling_factor$", "topk_method$", "topk_group$", "n_group$", "attn_logit_softcapping$", "final_logit_softcapping$",
    "query_pre_attn_scalar$", "attn_temperature_tuning$", "floor_scale$", "swiglu_limit$", "gradient_checkpointing$",
    "embedding_multiplier$", "logits_scaling$", "residual_multiplier$", "attention_multiplier$", "reorder_and_upcast_attn$",
    "scale_attn_", "attention_scaling_factor$", "initial_context_length$", "original_max_position_embeddings$", "cache_implementation$",
    "qkv_bias_in_", "bos_token", "is_", "chunk_size_feed_forward$", "max_length$", "use_bidirectional_attention$", "parallel_attn$",
    "embedding_initializer_range$", "ep_size$", "moe_layer_id$", "do_", "slow_but_exact$", "apply_residual_connection_post_layernorm$",
    "clip_qkv$", "logit_scale$", "logits_to_keep$", "for_llm_compressor$", "encoder_stride$", "use_return_dict$", "finetuning_task$",
    "masked_softmax_fusion$", "skip_bias_add", "unk_token_id$", "seq_length$", "offset_alibi$", "n_positions_$", "use_parallel_residual$", "swiglu_", "pooler_",
)  # fmt: skip
ENDS: Final = ("_token_id", "_token_ids", "_token_index", "_eps", "_theta", "dropout", "_token_id_list", "_prob")
TOWERS: Final = ("vision_config", "audio_config", "vision_tower", "mm_tokens_per_image", "image_size", "projector_hidden_act",
                 "vision_feature_layer", "boi_token_index", "eoi_token_index", "image_token_index")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Translated:
    """A config as a model.

    Args:
        keys: of the model, each with what it came from.
        notes: what is left out, in words; unknown: keys that were not heeded and may matter; idle: no shape depends on them.
    """

    name: str
    family: str
    keys: Mapping[str, Told]
    notes: tuple[str, ...]
    unknown: tuple[str, ...]
    idle: tuple[str, ...]
    place: Place


def read_config(path: Path) -> Translated:
    """The config of a file.

    Raises:
        SpecError: it cannot be read, or says what a model cannot.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError([Mistake(Place(str(path), 0, 0), f"the file cannot be read: {error.strerror or error}")]) from None
    tree = read_bytes(data.replace(b"\t", b" "), str(path))  # YAML indents with spaces, JSON with either
    name = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    return translated(tree, name or "model")


def translated(tree: Tree, name: str) -> Translated:
    """As `read_config`, of a tree."""
    mistakes = Mistakes()
    inner, outer, notes = _language(tree, mistakes)
    family = inner.text("model_type") or ""
    if not mistakes and family not in FAMILIES:
        at = inner.get("model_type")
        place = tree.place if at is None else at.place
        if family in OUTSIDE:
            mistakes.add(place, f"a model of '{family}' is {OUTSIDE[family]}: model/1 cannot say that")
        elif at is None:
            mistakes.add(place, "'model_type' is missing: a config of Hugging Face names its family", f"such as {', '.join(FAMILIES)}"[:200])
        else:
            near = did_you_mean(family, FAMILIES)
            mistakes.add(place, f"'{family}' is no family that is known here", near or f"one of {', '.join(sorted(FAMILIES))}")
    mistakes.raise_if_any()
    one = FAMILIES[family]
    # what is said beside `text_config` holds where the inside does not say it
    over = {key: each for key, each in outer.items() if key in ("tie_word_embeddings", "quantization_config")} if outer else {}
    both = Tree({**over, **dict(inner.items())}, inner.place, {**{key: outer.key_place(key) for key in over}, **inner.keys}) if outer else inner
    config = Config(both, family, mistakes, one.defaults)
    keys: Keys = one.read(config)
    narrow = quantised(config)
    if narrow is not None:
        keys["quantised"] = narrow
    notes += tuple(_left_out(config))
    mistakes.raise_if_any()
    rest = [key for key, each in both.items() if key not in config.used]
    idle = tuple(key for key in rest if _is_idle(key))
    unknown = tuple(key for key in rest if not _is_idle(key) and both.value and both.get(key) is not None and _says(both, key))
    silent = tuple(key for key in rest if key not in idle and key not in unknown)
    return Translated(name, family, {key: told for key, told in keys.items() if told is not None}, notes, unknown,
                      (*idle, *silent), tree.place)  # fmt: skip


def as_tree(made: Translated) -> Tree:
    """The model as the tree of a file, whose places are those of the config."""
    told = {"hwsim": Told("model/1", ""), "kind": Told("transformer", ""), "name": Told(made.name, ""), **made.keys}
    places = {key: each.place if each.place.file else made.place for key, each in told.items()}
    return Tree({key: tree_of(each.value, places[key]) for key, each in told.items()}, made.place, places)


def _language(tree: Tree, mistakes: Mistakes) -> tuple[Tree, Tree | None, tuple[str, ...]]:
    """(the config of the language model, the one around it, what is left out)."""
    if not tree.is_mapping:
        mistakes.add(tree.place, f"a config is a mapping, not {tree.what()}")
        return tree, None, ()
    inner = tree.get("text_config")
    if inner is None:
        return tree, None, ()
    if not inner.is_mapping:
        mistakes.add(inner.place, f"'text_config' is a mapping, not {inner.what()}")
        return tree, None, ()
    if inner.get("model_type") is None:
        outer = tree.get("model_type")
        if outer is not None:
            inner = inner.put("model_type", outer)
    towers = [key for key, each in tree.items() if key.endswith("_config") and key not in ("text_config", "quantization_config") and each.is_mapping]
    said = f": {', '.join(towers)} left out" if towers else ""
    return inner, tree, (f"of `text_config`, the language model alone{said}",)


def _left_out(config: Config) -> list[str]:
    notes = []
    predicted = config.count("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, minimum=0).value
    if predicted:
        notes.append(f"{predicted} more layers that predict further tokens are left out (num_nextn_predict_layers)")
    return notes


def _is_idle(key: str) -> bool:
    return key.endswith(ENDS) or any(key == each[:-1] if each.endswith("$") else key.startswith(each) for each in IDLE)


def _says(tree: Tree, key: str) -> bool:
    """Whether a key says something: neither nothing nor false."""
    found = tree.get(key)
    return found is not None and found.value not in (None, False, 0, "", 0.0)
