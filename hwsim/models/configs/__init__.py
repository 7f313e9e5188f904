"""Configs of Hugging Face (`config.json`) as models: which key becomes which, family by family.

    read_config(Path("config.json"))       the config, with the keys of a model and where each came from

A new family is a function in a file here, and a line in `families`.
"""

from __future__ import annotations

from hwsim.models.configs.config import Config, Told
from hwsim.models.configs.translating import Translated, as_tree, config_tree, read_config, translated
from hwsim.models.configs.writing import remarks, written

__all__ = ["Config", "Told", "Translated", "as_tree", "config_tree", "read_config", "remarks", "translated", "written"]
