"""Encoder families, for text and for images."""

from __future__ import annotations

from hwsim.models.configs.config import Config, ConfigValue
from hwsim.models.configs.decoders import Keys, decoder_keys, family_constant


def bert(config: Config) -> Keys:
    """Return the keys of BERT and RoBERTa, without a task head."""
    config.refuse_unless("is_decoder", (False, None), "a decoder is not supported")
    keys = decoder_keys(config, gated=False, norm="layernorm", positions="learned")
    keys |= {
        "tied": None,
        "bias": family_constant(True, config),
        "final_norm": family_constant(False, config),
        "embedding_norm": family_constant(True, config),
        "token_types": config.count("type_vocab_size", default=2, minimum=0),
        "pooler": family_constant(True, config),
        "causal": family_constant(False, config),
    }
    return keys


def vit(config: Config) -> Keys:
    """Return the keys of ViT, with a classifier if the config names classes."""
    image, side = config.count("image_size"), config.count("patch_size")
    channels = config.count("num_channels", default=3)
    keys = {key: config.count(name) for key, name in
            (("layers", "num_hidden_layers"), ("hidden", "hidden_size"), ("heads", "num_attention_heads"),
             ("ffn", "intermediate_size"))}  # fmt: skip
    tokens = (image.value // max(1, side.value)) ** 2 + 1
    named = config.find("id2label")[1]
    classes = len(named.items()) if named is not None else config.count("num_labels", default=0, minimum=0).value
    patches = {"image": image.value, "side": side.value, "channels": channels.value}
    qkv = config.flag("qkv_bias", default=True)
    return {
        **keys,
        "vocab": family_constant(0, config),
        "sequence": ConfigValue(tokens, "squares of an image and one more", image.place),
        "bias": family_constant(True, config) if qkv.value else ConfigValue(["projection", "ffn", "norm"], "qkv_bias"),
        "causal": family_constant(False, config),
        "patches": ConfigValue(patches, "image_size, patch_size, num_channels", image.place),
        "classes": ConfigValue(classes, "id2label") if classes else None,
    }
