"""Model files created from configs: each key with its origin, and comments on ignored keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hwsim.models.configs.translation import TranslatedConfig
from hwsim.spec.yaml_writer import flow


def model_yaml(made: TranslatedConfig, source: str) -> str:
    """Return the text of `model.yaml`.

    Args:
        source: origin of the config, as text.
    """
    lines = ["hwsim: model/1", f"kind: {made.kind}", f"name: {flow(made.name)}", "source: datasheet", f"ref: {flow(source)}"]
    for key, value in made.keys.items():
        if key == "runs":
            lines.append(f"runs:  # {value.origin}")
            lines += [f"  - {flow(run)}" for run in value.value]
        else:
            lines.append(f"{key}: {flow(value.value)}  # {value.origin}")
    return "\n".join([*lines, *remarks(made)]) + "\n"


def remarks(made: TranslatedConfig) -> Iterator[str]:
    """Yield comments on ignored parts of the config."""
    for note in made.notes:
        yield from _comment(note)
    if made.unknown:
        yield from _comment(f"unknown keys, ignored: {', '.join(made.unknown)}")
    if made.idle:
        yield from _comment(f"keys without effect on shapes, ignored: {', '.join(made.idle)}")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 120, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
