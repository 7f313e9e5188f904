"""fp8 products by cuBLASLt: what the library is asked for, and what is said where it, or the GPU, has none."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from hwsim_calibrate import cublaslt
from hwsim_calibrate.case import CannotMeasure


class Library:
    """cuBLASLt as it would hear the calls."""

    def __init__(self, kernels: int = 1, status: int = 0) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        self.kernels, self.status = kernels, status

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.heard.append((name, arguments))
            if name == "cublasLtMatmulAlgoGetHeuristic":
                ctypes.cast(arguments[-1], ctypes.POINTER(ctypes.c_int))[0] = self.kernels
            return self.status if name == "cublasLtMatmul" else 0

        return call

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.heard if called == name]


def room(size: int) -> Any:
    return SimpleNamespace(size=size, data=SimpleNamespace(ptr=4096 + size))


def product(library: Library, m: int, k: int, n: int) -> Any:
    return cublaslt.Products(library, room).product(m, k, n, room(4), lambda: 7)


def test_a_product_is_asked_for_with_k_as_the_inner_axis_of_both_factors() -> None:
    library = Library()
    product(library, 8, 64, 32)()
    layouts = [[getattr(each, "value", each) for each in arguments[1:]] for arguments in library.of("cublasLtMatrixLayoutCreate")]
    assert layouts == [[28, 64, 32, 64], [28, 64, 8, 64], [14, 32, 8, 32], [14, 32, 8, 32]]
    (multiplied,) = library.of("cublasLtMatmul")
    assert [multiplied[at].value for at in (3, 5, 8, -1)] == [4096 + 32 * 64, 4096 + 8 * 64, 4096 + 2 * 8 * 32, 7]
    assert [arguments[1] for arguments in library.of("cublasLtMatmulDescSetAttribute")] == [3, 17, 18]


def test_the_proposal_of_the_library_has_its_size() -> None:
    assert ctypes.sizeof(cublaslt.Algorithm) == 96


@pytest.mark.parametrize(
    ("library", "shape", "why"),
    [
        (Library(), (8, 64, 30), "multiples of 16"),
        (Library(kernels=0), (8, 64, 32), "no kernel"),
        (Library(status=15), (8, 64, 32), "status 15"),
    ],
)
def test_what_cannot_be_multiplied_is_said(library: Library, shape: tuple[int, int, int], why: str) -> None:
    with pytest.raises(CannotMeasure, match=why):
        product(library, *shape)()


def absent() -> Any:
    raise OSError


def test_a_gpu_or_a_library_without_fp8_is_named() -> None:
    assert "8.6" in cublaslt.lacking(86)
    assert "cuBLASLt is not found" in cublaslt.lacking(90, absent)
    assert cublaslt.lacking(90, Library) == ""
