"""Builders of snippets that differ only in their function, by the operands that the function receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.suites.arrays import Array, numbers

Build = Callable[[Inputs], Call]


def of_words(name: str, **options: Any) -> Build:
    """Build a numpy function of one array, whose value order depends on `words`."""

    def build(inputs: Inputs) -> Call:
        values, function = inputs.values(), getattr(np, name)
        return lambda: function(values, **options)

    return build


def of_values(function: Callable[[Array], Any]) -> Build:
    """Build a function of one array."""

    def build(inputs: Inputs) -> Call:
        values = numbers(inputs.dtype, inputs.n)
        return lambda: function(values)

    return build


def of_two(function: Callable[..., Any]) -> Build:
    """Build a function of two arrays."""

    def build(inputs: Inputs) -> Call:
        first, second = numbers(inputs.dtype, inputs.n), numbers(inputs.dtype, inputs.n)
        return lambda: function(first, second)

    return build


def of_grid(function: Callable[..., Any]) -> Build:
    """Build a function of a two-dimensional array."""

    def build(inputs: Inputs) -> Call:
        grid = inputs.grid()
        return lambda: function(grid)

    return build


def of_square(function: Callable[..., Any]) -> Build:
    """Build a function of a regular square matrix."""

    def build(inputs: Inputs) -> Call:
        matrix = inputs.square()
        return lambda: function(matrix)

    return build


def of_frames(function: Callable[..., Any]) -> Build:
    """Build a function of many short rows."""

    def build(inputs: Inputs) -> Call:
        frames = numbers(inputs.dtype, max(inputs.n // inputs.table, 1), inputs.table)
        return lambda: function(frames)

    return build
