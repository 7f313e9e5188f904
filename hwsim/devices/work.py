"""The work of an op on a compute device, independent of the device, and its library call, if it is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.units import BYTES

Mix = Literal["matmul", "vector", "reduce", "random"]
Start = Literal["stream", "graph", "host"]
Role = Literal["read", "write", "update"]
Into = Literal["new", "out", "self"]
BY_ROW: Final = frozenset({
    "sort", "argsort", "fft", "ifft", "rfft", "irfft", "solve", "inv", "det", "cholesky", "qr", "eig", "eigh", "eigvals",
    "eigvalsh", "svd",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatmulShape:
    """The shape of a matmul: (m x k) by (k x n), `batch` times.

    Args:
        m: rows of the first operand.
        n: columns of the second operand.
        k: columns of the first operand.
        batch: number of matmuls.
        transposed: whether the second operand is stored as n x k, as the weights of a linear layer are.
        element: size of an element of the operands (B); 0: derived from the bytes read, if each element is read once.
        weight: size of an element of the second operand, if different (B).
        cast: size of an element of the first operand before its cast to the number format of the matmul (B); 0: no cast.
        variant: kernel variant, if the number format does not determine it: "fp8-block", "int4-weights".
        software: library of the kernels.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    transposed: bool = False
    element: float = 0.0
    weight: float = 0.0
    cast: float = 0.0
    variant: str = ""
    software: str = ""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a call reads or writes.

    Args:
        bytes: size of the array (B).
        role: read, write, or update in place.
        since: reuse distance: bytes used since its last use, including itself; None: the bytes of this call.
    """

    bytes: float
    role: Role = "read"
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCall:
    """One call of a library function.

    Args:
        function: name in the library.
        form: layout of the operands (`scalar`, `row`, `column`, `strided`, ...).
        dtype: number format.
        count: number of elements.
        rows: number of inner loops.
        operands: arrays that it reads and writes.
        into: destination of the result: a new array, an existing array, or an operand itself.
        product: shape, if it is a matmul.
        lookups: number of elements looked up at random.
        span: size of the array of these lookups (B).
        cores: number of cores that it uses; None: any.
        fresh: bytes written to new pages; None: all of a new array or none, by its size.
        faults: page faults, for pages of any size.
        among_others: whether the call follows calls of other functions, whose code has evicted its own.
    """

    function: str
    form: str = ""
    dtype: str = "fp64"
    count: float = 0.0
    rows: float = 1.0
    operands: tuple[Operand, ...] = ()
    into: Into = "out"
    product: MatmulShape | None = None
    lookups: float = 0.0
    span: float = 0.0
    cores: int | None = None
    fresh: float | None = None
    faults: float = 0.0
    among_others: bool = False

    @property
    def moved(self) -> float:
        """Size of all operands (B)."""
        return math.fsum(operand.bytes for operand in self.operands)

    @property
    def made(self) -> float:
        """Size of the array that it creates (B)."""
        return math.fsum(operand.bytes for operand in self.operands if operand.role == "write") if self.into == "new" else 0.0

    @property
    def written(self) -> float:
        """Bytes written to any array."""
        return math.fsum(operand.bytes for operand in self.operands if operand.role != "read")

    @property
    def point(self) -> tuple[float, ...]:
        """Coordinates among the calls of its function and form: m, n, k and batch of a matmul, else elements and inner loops."""
        if self.product is not None:
            return float(self.product.m), float(self.product.n), float(self.product.k), float(self.product.batch)
        if self.function in BY_ROW:  # each row is an independent problem
            return max(self.count / max(self.rows, 1.0), 1.0), 1.0
        return max(self.count, 1.0), max(self.rows, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The operations and the memory traffic of one op.

    Args:
        flop: arithmetic operations; for mix "random", the count of random numbers.
        reads: bytes read.
        writes: bytes written.
        dtype: number format of the computation.
        mix: units that it uses, and their efficiency.
        cores: number of CPU cores; None: all.
        product: shape, if it is a matmul.
        working_set: bytes used repeatedly, which a cache may hold; None: each byte comes from memory once.
        in_place: bytes written to addresses that are also read, so that their cache lines are not fetched for the write.
        isa: CPU instruction class (scalar, sse, avx2, avx512, neon, sve); "": the widest.
        instructions: CPU instructions, including arithmetic; 0: not counted.
        branches: branches among these instructions.
        mispredicted: share of mispredicted branches.
        threads: hardware threads of a core that share the work (SMT).
        remote: share of the traffic to the memory of another domain or socket.
        kernels: number of consecutive GPU kernels, each with a launch.
        start: how they are launched: in a stream, in a graph, or by a host that waits for each.
        call: library call, for a machine with measured calls.
        attention: call of fused attention, for a GPU.
        experts: call of a mixture of experts, for a GPU.
    """

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    dtype: str = "fp32"
    mix: Mix = "vector"
    cores: int | None = None
    product: MatmulShape | None = None
    working_set: float | None = None
    in_place: float = 0.0
    isa: str = ""
    instructions: float = 0.0
    branches: float = 0.0
    mispredicted: float = 0.0
    threads: int = 1
    remote: float = 0.0
    kernels: int = 1
    start: Start = "stream"
    call: LibraryCall | None = None
    attention: AttentionCall | None = None
    experts: ExpertsCall | None = None

    @property
    def traffic(self) -> float:
        """Bytes read and written."""
        return self.reads + self.writes


@dataclass(frozen=True)
class AttentionCall:
    """A call of fused attention. The numbers may be arrays, with one element for each call; derived numbers are cached.

    Args:
        sequences: sequences in the batch.
        queries: tokens of each sequence that are computed.
        cached: tokens of each sequence before them, in the KV cache.
        heads: query heads.
        kv_heads: key-value heads.
        head: head size (average of key and value, if they differ).
        width: size of an element of q, k, v and the result (B).
        kv_width: size of an element of the KV cache (B).
        causal: 1: a token attends only to earlier tokens; 0: to all tokens.
        window: maximum number of tokens that a token attends to; 0: unlimited.
        written: 1: keys and values are written to a cache, after passes over q, k and v; 0: they are used in place.
        warm: 1: the last-level cache may hold earlier keys and values (a benchmark that repeats a call); 0: it does not.
        latent: operations of a query head with one latent vector of all heads; 0: separate keys and values.
        library: library of the kernel, a name in `attention:`.
    """

    sequences: float
    queries: float
    cached: float
    heads: float
    kv_heads: float
    head: float
    width: float = 2.0
    kv_width: float = 2.0
    causal: float = 1.0
    window: float = 0.0
    written: float = 1.0
    warm: float = 0.0
    latent: float = 0.0
    library: str = "flash"

    @cached_property
    def context(self) -> float:
        """Tokens that the last query attends to, without a window."""
        return self.queries + self.cached

    @cached_property
    def seen(self) -> float:
        """Average tokens that a query attends to.

        >>> AttentionCall(1, 4, 0, 1, 1, 64).seen, AttentionCall(1, 4, 0, 1, 1, 64, window=2).seen
        (2.5, 1.75)
        """
        reach = self.window + (self.window <= 0) * self.context
        last = reach - (reach - self.context) * (reach > self.context)  # tokens of the last query
        ramp = last - self.cached - 1  # queries that attend to one token more than the previous query
        ramp = ramp * (ramp > 0)
        return self.causal * (last - ramp * (ramp + 1) / (2 * self.queries)) + (1 - self.causal) * self.context

    @cached_property
    def each(self) -> float:
        """Operations of a query with a key."""
        return 4.0 * self.head * (self.latent <= 0) + self.latent

    @property
    def flop(self) -> float:
        """Operations of the matmuls, for the attended tokens only."""
        return self.sequences * self.heads * self.queries * self.seen * self.each

    @cached_property
    def outer(self) -> float:
        """Size of q and of the result (B)."""
        return self.sequences * self.queries * 2 * self.heads * self.head * self.width

    @cached_property
    def reach(self) -> float:
        """Tokens that any of its queries attends to.

        >>> AttentionCall(1, 1, 4095, 1, 1, 64, window=128).reach, AttentionCall(1, 512, 1024, 1, 1, 64).reach
        (128, 1536.0)
        """
        limit = self.window + (self.queries - 1) * (self.window > 0) + (self.window <= 0) * self.context
        return limit - (limit - self.context) * (limit > self.context)

    @cached_property
    def keys(self) -> float:
        """Size of the keys and values of the attended tokens (B)."""
        return self.sequences * self.reach * 2 * self.kv_heads * self.head * self.kv_width

    @cached_property
    def old(self) -> float:
        """Size of the keys and values that were cached before (B)."""
        return self.keys * (self.reach - self.queries) / self.reach

    @cached_property
    def fresh(self) -> float:
        """Size of the new keys and values (B)."""
        return self.sequences * self.queries * 2 * self.kv_heads * self.head * self.width

    @property
    def decoding(self) -> bool:
        """Whether each sequence has one query."""
        return self.queries == 1


@dataclass(frozen=True, slots=True)
class ExpertsCall:
    """A call of the experts of one GPU. The numbers may be arrays, with one element for each call.

    Args:
        tokens: number of input tokens.
        pairs: pairs of a token and one of its experts on this GPU.
        active: experts with at least one token.
        blocks: row blocks of all experts, for each tile size.
        hidden: size of a token's vector.
        inner: size of an expert's hidden layer.
        gates: 2 with a gate, else 1.
        weight: size of a weight (B).
        width: size of an element of a token (B).
        kernel: name of the kernel in `experts:`.
        experts: experts of the GPU; 0: `active`.
    """

    tokens: float
    pairs: float
    active: float
    blocks: tuple[float, ...]
    hidden: float
    inner: float
    gates: float = 2.0
    weight: float = 2.0
    width: float = 2.0
    kernel: str = "flash bf16"
    experts: float = 0.0

    @property
    def flop(self) -> float:
        """Operations of the matmuls."""
        return 2.0 * self.pairs * (self.gates + 1) * self.hidden * self.inner


def _ages(since: Sequence[float], count: int) -> list[float | None]:
    return [*since[:count], *([None] * (count - len(since)))]


def elementwise_call(
    function: str,
    *,
    dtype: str,
    count: float,
    inputs: int = 1,
    form: str = "",
    rows: float = 1.0,
    into: Into = "new",
    result: str = "",
    since: Sequence[float] = (),
) -> LibraryCall:
    """Return the call of an elementwise function of `inputs` arrays with `count` elements each.

    Args:
        function: name in the library.
        dtype: number format.
        count: elements of each array.
        inputs: number of input arrays.
        form: layout; `mask`: one input is of bool; `from fp64`: the inputs are of that number format.
        rows: number of inner loops.
        into: destination of the result.
        result: number format of the result, if different.
        since: reuse distance of each input, then of the result (B).
    """
    source = form.removeprefix("from ")
    width, made = BYTES[source if source != form else dtype], BYTES[result or dtype]
    sizes = [count * width] * inputs
    if form == "mask" and inputs > 1:
        sizes[-1] = count * BYTES["bool"]
    ages = _ages(since, inputs + 1)
    read = [Operand(size, "read", age) for size, age in zip(sizes, ages, strict=False)]
    written = Operand(count * made, "update" if into == "self" else "write", ages[inputs])
    return LibraryCall(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=(*read, written), into=into)


def reduce_call(
    function: str,
    *,
    dtype: str,
    count: float,
    form: str = "",
    rows: float = 1.0,
    into: Into = "new",
    since: Sequence[float] = (),
) -> LibraryCall:
    """Return the call of a reduction of `count` elements: of all, within each of `rows` rows (`rows`), or across (`columns`)."""
    read = Operand(count * BYTES[dtype], "read", since[0] if since else None)
    return LibraryCall(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=(read,), into=into)


def product_call(
    m: int,
    k: int,
    n: int,
    *,
    dtype: str,
    batch: int = 1,
    form: str = "",
    into: Into = "new",
    since: Sequence[float] = (),
) -> LibraryCall:
    """Return the call of a matmul of (m x k) by (k x n).

    form: operand that is stored transposed, `a` or `b`; `gram`: product of a matrix with itself.
    With a vector on one side, the function is `matvec`, or `vecmat` if the matrix is read across its rows.
    """
    width = BYTES[dtype]
    sizes = (m * k * batch * width, k * n * batch * width, m * n * batch * width)
    ages = _ages(since, 3)
    operands = (Operand(sizes[0], "read", ages[0]), Operand(sizes[1], "read", ages[1]), Operand(sizes[2], "write", ages[2]))
    if 1 in (m, n) and batch == 1:
        along = (form != "a") if n == 1 else (form == "b")
        return LibraryCall(
            function="matvec" if along else "vecmat",
            dtype=dtype,
            count=float(m) * k * n,
            rows=float(max(m, n) if along else k),
            operands=operands,
            into=into,
        )
    return LibraryCall(
        function="matmul",
        form=form,
        dtype=dtype,
        count=float(m) * k * n * batch,
        operands=operands,
        into=into,
        product=MatmulShape(m, n, k, batch),
    )


def general_call(
    function: str,
    *,
    dtype: str,
    count: float,
    reads: float,
    writes: float,
    form: str = "",
    rows: float = 1.0,
    into: Into = "new",
    since: Sequence[float] = (),
) -> LibraryCall:
    """Return the call of any other function: `count` steps, with the bytes that they read and write.

    since: reuse distance of the input and of the output (B).
    """
    ages = _ages(since, 2)
    operands = (Operand(reads, "read", ages[0]), Operand(writes, "write", ages[1]))
    return LibraryCall(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=operands, into=into)


def lookup_call(
    function: str,
    *,
    dtype: str,
    count: float,
    table: float,
    length: float = 1.0,
    into: Into = "new",
    since: Sequence[float] = (),
) -> LibraryCall:
    """Return the call that looks up `count` elements, or rows of `length` elements, at random in `table` elements.

    since: reuse distance of the table, the index and the result (B).
    """
    width = BYTES[dtype]
    ages = _ages(since, 3)
    size = count * length * width
    span = ages[0] if ages[0] is not None else table * width
    read = [Operand(count * BYTES["int64"], "read", ages[1])]
    if length > 1:  # beyond its first cache line, a row is a stream
        read.append(Operand(size, "read", max(span, table * width)))
    return LibraryCall(
        function=function,
        dtype=dtype,
        count=count * length,
        rows=count if length > 1 else 1.0,
        operands=(*read, Operand(size, "write", ages[2])),
        into=into,
        lookups=count,
        span=table * width,
    )
