"""A convolution as matmuls: the algorithms that a library may use instead of the direct sum over the window.

A convolution of `images` x (channels_in, height, width) with kernels of a x b, stride s and g groups is, for each group, an
implicit matmul (the larger matrix is never written to memory):

    forward     output pixels x channels_out / g          over  a b channels_in / g.
    input       output pixels x channels_in / g           over  a b channels_out / g     (with a stride, s^2 smaller ones).
    weights     a b channels_in / g x channels_out / g    over  output pixels.

All three have the same number of operations. Kernels of 3 x 3 and 5 x 5 with stride 1 may use the Winograd transform instead.
Tiles of 4 x 4 results then need (4 + a - 1)^2 multiplications instead of 16 a^2, each a matmul of its own; the transformed tiles
pass through memory. With few channels per group, a group fills a small part of a tile, and the vector units compute the sum
directly. The library uses the fastest algorithm.

**Source**: Chetlur et al., "cuDNN", arXiv:1410.0759; Lavin and Gray, arXiv:1509.09308 (transforms, section 4: F(4x4, 3x3)).
**Error**: see `docs/validation/models.md`.
**Range**: two dimensions, no dilation; transforms only outside the matrix units, where fp32 is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from hwsim.devices.work import MatmulShape, Work
from hwsim.records import dataclass
from hwsim.units import BYTES

Pass = Literal["forward", "input", "weights"]
PIECE: Final = 64  # pixels of a piece; the last piece is padded, so the alignment of rows does not matter
TILE: Final = 4  # side of a Winograd tile, in results: Lavin and Gray, F(4x4, 3x3)


@dataclass(frozen=True, slots=True)
class ConvolutionPass:
    """The geometry of one pass of a convolution over a batch.

    Args:
        images: images in the batch.
        channels_in: input channels.
        channels_out: output channels.
        high: height of the output (pixels).
        wide: width of the output (pixels).
        kernel: height and width of the kernel.
        stride: stride.
        size_in: pixels of an input image.
        groups: groups of channels.
        what: forward, input gradient or weight gradient.
    """

    images: int
    channels_in: int
    channels_out: int
    high: int
    wide: int
    kernel: tuple[int, int]
    stride: int
    size_in: int
    groups: int = 1
    what: Pass = "forward"

    @property
    def pixels(self) -> int:
        """Output pixels of all images, for one channel."""
        return self.images * self.high * self.wide

    @property
    def window(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def flop(self) -> float:
        return 2.0 * self.pixels * self.channels_out * self.channels_in // self.groups * self.window

    def traffic(self, width: float) -> tuple[float, float]:
        """Return the bytes (read, written), with each array transferred once."""
        image = self.images * self.size_in * self.channels_in * width
        result = self.pixels * self.channels_out * width
        weights = self.channels_in // self.groups * self.channels_out * self.window * width
        match self.what:
            case "forward":
                return image + weights, result
            case "input":
                return result + weights, image
            case "weights":
                return image + result, weights

    def images_moved(self, width: float) -> float:
        """Return the size of input and output images without the weights (B)."""
        return (self.images * self.size_in * self.channels_in + self.pixels * self.channels_out) * width

    def product(self, width: float) -> MatmulShape:
        """Return the matmul of each group."""
        into, out, g = self.channels_in // self.groups, self.channels_out // self.groups, self.groups
        match self.what:
            case "forward":
                return MatmulShape(self.pixels, out, into * self.window, g, element=width)
            case "input":
                return MatmulShape(self.pixels, into, out * self.window, g, element=width)
            case "weights":
                pixels = -(-self.pixels // PIECE) * PIECE
                return MatmulShape(into * self.window, out, pixels, g, element=width)

    def work(self, dtype: str) -> Work:
        """Return the work as an implicit matmul."""
        width = BYTES[dtype]
        reads, writes = self.traffic(width)
        return Work(flop=self.flop, reads=reads, writes=writes, dtype=dtype, mix="matmul", product=self.product(width))

    def ways(self, dtype: str, *, matrix_units: bool) -> Iterator[tuple[Work, ...]]:
        """Yield the algorithms, each as a sequence of kernels.

        matrix_units: whether units that only multiply matrices compute the number format.
        """
        yield (self.work(dtype),)
        reads, writes = self.traffic(BYTES[dtype])
        if self.groups > 1:
            yield (Work(flop=self.flop, reads=reads, writes=writes, dtype="fp32" if dtype == "tf32" else dtype),)
        elif not matrix_units and self.stride == 1 and self.kernel in ((3, 3), (5, 5)):
            yield self._transformed(dtype)

    def _transformed(self, dtype: str) -> tuple[Work, ...]:
        side = TILE + self.kernel[0] - 1
        tiles = self.images * -(-self.high // TILE) * -(-self.wide // TILE)
        width, points = BYTES[dtype], side * side
        into, out = float(tiles * points * self.channels_in) * width, float(tiles * points * self.channels_out) * width
        kernels = float(points * self.channels_in * self.channels_out) * width
        reads, writes = self.traffic(width)
        match self.what:
            case "forward":
                read, written, shape = into + kernels, out, MatmulShape(tiles, self.channels_out, self.channels_in, points)
            case "input":
                read, written, shape = out + kernels, into, MatmulShape(tiles, self.channels_in, self.channels_out, points)
            case "weights":
                read, written, shape = into + out, kernels, MatmulShape(self.channels_in, self.channels_out, tiles, points)
        flop = 2.0 * tiles * points * self.channels_in * self.channels_out
        return (
            Work(reads=reads, writes=read, dtype=dtype),
            Work(flop=flop, reads=read, writes=written, dtype=dtype, mix="matmul", product=shape),
            Work(reads=written, writes=writes, dtype=dtype),
        )
