"""Builders of snippets that differ only in the function: of one array, of two, of a grid, of a square matrix, of short rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.suites.arrays import Array, numbers

Build = Callable[[Size], Call]


def of_words(name: str, **options: Any) -> Build:
    """A function of numpy of one array in the order that the words say."""

    def build(size: Size) -> Call:
        values, function = size.values(), getattr(np, name)
        return lambda: function(values, **options)

    return build


def of_values(function: Callable[[Array], Any]) -> Build:
    """A function of one array."""

    def build(size: Size) -> Call:
        values = numbers(size.dtype, size.n)
        return lambda: function(values)

    return build


def of_two(function: Callable[..., Any]) -> Build:
    """A function of two arrays."""

    def build(size: Size) -> Call:
        first, second = numbers(size.dtype, size.n), numbers(size.dtype, size.n)
        return lambda: function(first, second)

    return build


def of_grid(function: Callable[..., Any]) -> Build:
    """A function of an array of two axes."""

    def build(size: Size) -> Call:
        grid = size.grid()
        return lambda: function(grid)

    return build


def of_square(function: Callable[..., Any]) -> Build:
    """A function of a square matrix that has an inverse."""

    def build(size: Size) -> Call:
        matrix = size.square()
        return lambda: function(matrix)

    return build


def of_frames(function: Callable[..., Any]) -> Build:
    """Many short rows at once."""

    def build(size: Size) -> Call:
        frames = numbers(size.dtype, max(size.n // size.table, 1), size.table)
        return lambda: function(frames)

    return build
