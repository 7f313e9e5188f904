"""Hugging Face configs (`config.json`) as models: the mapping of keys for each model family.

    read_config(Path("config.json"))       the keys of a model, each with its origin

A new family is a function in a module here, and a line in `families`.
"""

from __future__ import annotations

from hwsim.models.configs.config import Config, Told
from hwsim.models.configs.translating import Translated, as_tree, config_tree, read_config, translated
from hwsim.models.configs.writing import remarks, written

__all__ = ["Config", "Told", "Translated", "as_tree", "config_tree", "read_config", "remarks", "translated", "written"]
