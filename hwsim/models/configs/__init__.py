"""Hugging Face configs (`config.json`) as models: the mapping of keys for each model family.

    read_config(Path("config.json"))       the keys of a model, each with its origin

A new family is a function in a module here, and a line in `families`.
"""

from __future__ import annotations

from hwsim.models.configs.model_writer import model_yaml
from hwsim.models.configs.translation import TranslatedConfig, as_tree, config_tree, read_config, translate_config

__all__ = [
    "TranslatedConfig",
    "as_tree",
    "config_tree",
    "model_yaml",
    "read_config",
    "translate_config",
]
