"""The work of an op on a computing device: amounts that no device changes, and the call of an array library, if it is one."""

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
class Product:
    """The shape of a matrix product: (m x k) by (k x n), `batch` times.

    transposed: the second factor is stored as n x k, as the weights of a linear layer are.
    element: bytes of an element of the factors; 0: as many as the bytes read say, which holds where each is read once.
    weight: bytes of an element of the second factor, where they are others.
    cast: bytes of an element of the first factor before it is cast to the format of the product; 0: it comes in it.
    variant: which kernels, where the format does not say: "fp8-block", "int4-weights".  software: whose.
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
    """An array that a call goes through.

    since: bytes used since its last use, its own included; None: the bytes of this call.
    """

    bytes: float
    role: Role = "read"
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call.

    function: what the library calls it; `form`: how its operands lie (`scalar`, `row`, `column`, `strided`, ...).
    count: elements it goes through, in `rows` inner loops.  into: where the result goes: to a new array, to one that is
    there, to an operand itself.  lookups: of the elements, how many are looked up anywhere in `span` bytes.
    """

    function: str
    form: str = ""
    dtype: str = "fp64"
    count: float = 0.0
    rows: float = 1.0
    operands: tuple[Operand, ...] = ()
    into: Into = "out"
    product: Product | None = None
    lookups: float = 0.0
    span: float = 0.0
    cores: int | None = None
    fresh: float | None = None  # bytes of what it writes that lie on new pages; None: all of a new array, or nothing, by its size
    faults: float = 0.0  # pages that the system makes for them, of whatever size
    among_others: bool = False  # it comes after calls of other functions, whose code is where its own would be

    @property
    def moved(self) -> float:
        """Bytes of all its operands."""
        return math.fsum(operand.bytes for operand in self.operands)

    @property
    def made(self) -> float:
        """Bytes of the array it makes."""
        return math.fsum(operand.bytes for operand in self.operands if operand.role == "write") if self.into == "new" else 0.0

    @property
    def written(self) -> float:
        """Bytes that it writes, to whatever array."""
        return math.fsum(operand.bytes for operand in self.operands if operand.role != "read")

    @property
    def point(self) -> tuple[float, ...]:
        """Place among the calls of its function and form: m, n, k and batch of a product, else elements and inner loops."""
        if self.product is not None:
            return float(self.product.m), float(self.product.n), float(self.product.k), float(self.product.batch)
        if self.function in BY_ROW:  # each row is a problem of its own
            return max(self.count / max(self.rows, 1.0), 1.0), 1.0
        return max(self.count, 1.0), max(self.rows, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Operations and memory traffic of one op.

    Args:
        flop: arithmetic operations; for mix "random", how many numbers are drawn.
        reads, writes: bytes read and written.
        dtype: number format it computes in.
        mix: which units it uses, and how well.
        cores: cores of a cpu; None for all.
        product: the shape of a matrix product, where it is one.
        working_set: bytes it uses repeatedly, which a cache may hold; None: everything comes from memory once.
        in_place: bytes written to places that it reads as well: a cache need not fetch their lines for the writing.
        isa: class of instructions a cpu uses (scalar, sse, avx2, avx512, neon, sve); "" for its widest.
        instructions: that a cpu executes, arithmetic included; 0 if not counted.
        branches, mispredicted: number of branches among these instructions, and the part whose way is guessed wrong.
        threads: threads of a core that work on it (SMT).
        kernels: kernels of a gpu that do it one after another; each has to be started.
        start: who starts them: the one before in the stream, a graph, or the host, which waits for each.
        remote: part of the traffic that goes to the memory of another domain or socket.
        call: the call of a library that it is, for a machine whose calls were measured.
        attention: the call of fused attention that it is, for a gpu; experts: of a mixture of experts.
    """

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    dtype: str = "fp32"
    mix: Mix = "vector"
    cores: int | None = None
    product: Product | None = None
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
    call: Call | None = None
    attention: Attended | None = None
    experts: Routed | None = None

    @property
    def traffic(self) -> float:
        """Bytes read and written."""
        return self.reads + self.writes


@dataclass(frozen=True)
class Attended:
    """A call of fused attention. The numbers may be arrays, one for each call; what follows from them is found once.

    Args:
        sequences: in the batch; queries: tokens of each that are computed; cached: tokens of each before them.
        heads: number for the queries; kv_heads: for keys and values.
        head: numbers of a head's vector (of a key and a value on average, where they differ).
        width: bytes of a number of q, k, v and the result; kv_width: of the cache.
        causal: 1: a token sees only those before it; 0: all.
        window: tokens that it sees at most; 0: any number.
        written: 1: keys and values are written to a cache, with passes over q, k and v before; 0: they are used as they are.
        warm: 1: the last cache may hold keys and values of before (a benchmark that repeats a call); 0: others came since.
        latent: operations of a query head with one latent vector of all heads; 0: keys and values are apart.
        library: whose kernel, a name of `attention:`.
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
        """Tokens that the last query sees, if its window lets it."""
        return self.queries + self.cached

    @cached_property
    def seen(self) -> float:
        """Tokens that a query sees on average.

        >>> Attended(1, 4, 0, 1, 1, 64).seen, Attended(1, 4, 0, 1, 1, 64, window=2).seen
        (2.5, 1.75)
        """
        reach = self.window + (self.window <= 0) * self.context
        near = reach - (reach - self.context) * (reach > self.context)  # of the last query
        grown = near - self.cached - 1  # queries that see one token more than the one before
        grown = grown * (grown > 0)
        return self.causal * (near - grown * (grown + 1) / (2 * self.queries)) + (1 - self.causal) * self.context

    @cached_property
    def each(self) -> float:
        """Operations of a query with a key."""
        return 4.0 * self.head * (self.latent <= 0) + self.latent

    @property
    def flop(self) -> float:
        """Operations of the products, of what is seen alone."""
        return self.sequences * self.heads * self.queries * self.seen * self.each

    @cached_property
    def outer(self) -> float:
        """Bytes of q and of the result."""
        return self.sequences * self.queries * 2 * self.heads * self.head * self.width

    @cached_property
    def reach(self) -> float:
        """Tokens that any of its queries sees.

        >>> Attended(1, 1, 4095, 1, 1, 64, window=128).reach, Attended(1, 512, 1024, 1, 1, 64).reach
        (128, 1536.0)
        """
        limit = self.window + (self.queries - 1) * (self.window > 0) + (self.window <= 0) * self.context
        return limit - (limit - self.context) * (limit > self.context)

    @cached_property
    def keys(self) -> float:
        """Bytes of keys and values of the tokens that are seen."""
        return self.sequences * self.reach * 2 * self.kv_heads * self.head * self.kv_width

    @cached_property
    def old(self) -> float:
        """Bytes of those that were cached before."""
        return self.keys * (self.reach - self.queries) / self.reach

    @cached_property
    def fresh(self) -> float:
        """Bytes of the new keys and values."""
        return self.sequences * self.queries * 2 * self.kv_heads * self.head * self.width

    @property
    def decoding(self) -> bool:
        """Whether it is one query a sequence."""
        return self.queries == 1


@dataclass(frozen=True, slots=True)
class Routed:
    """A call of the experts that a GPU has. The numbers may be arrays, one for each call.

    Args:
        tokens: that come in; pairs: of a token and one of its experts here; active: experts that have a token.
        experts: that the GPU has (0: as many as are active); blocks: blocks of rows of all experts, for each size of a tile.
        hidden: width of a token; inner: of an expert; gates: 2 where it has a gate, else 1.
        weight: bytes of a number of the weights; width: of a token's.
        kernel: whose, a name of `experts:`.
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
        """Operations of the products."""
        return 2.0 * self.pairs * (self.gates + 1) * self.hidden * self.inner


def _ages(since: Sequence[float], count: int) -> list[float | None]:
    """The last use of each of `count` operands; None of those that say nothing."""
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
) -> Call:
    """A function of each element of `inputs` arrays of `count`.

    form: with `mask` one of them is of bool, with `from fp64` they are of that type.  result: number format of the result,
    where it is another.  since: of each input, then of the result.
    """
    source = form.removeprefix("from ")
    width, made = BYTES[source if source != form else dtype], BYTES[result or dtype]
    sizes = [count * width] * inputs
    if form == "mask" and inputs > 1:
        sizes[-1] = count * BYTES["bool"]
    ages = _ages(since, inputs + 1)
    read = [Operand(size, "read", age) for size, age in zip(sizes, ages, strict=False)]
    written = Operand(count * made, "update" if into == "self" else "write", ages[inputs])
    return Call(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=(*read, written), into=into)


def reduce_call(
    function: str,
    *,
    dtype: str,
    count: float,
    form: str = "",
    rows: float = 1.0,
    into: Into = "new",
    since: Sequence[float] = (),
) -> Call:
    """A reduction of `count` elements: all of them, each of `rows` rows (form `rows`), or across them (form `columns`)."""
    read = Operand(count * BYTES[dtype], "read", since[0] if since else None)
    return Call(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=(read,), into=into)


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
) -> Call:
    """A product of (m x k) by (k x n).  form: which factor is stored transposed, `a` or `b`; `gram`: of a matrix with itself.

    With a vector on one side it is another function: `matvec`, or `vecmat` where the matrix is read across its rows.
    """
    width = BYTES[dtype]
    sizes = (m * k * batch * width, k * n * batch * width, m * n * batch * width)
    ages = _ages(since, 3)
    operands = (Operand(sizes[0], "read", ages[0]), Operand(sizes[1], "read", ages[1]), Operand(sizes[2], "write", ages[2]))
    if 1 in (m, n) and batch == 1:
        along = (form != "a") if n == 1 else (form == "b")
        return Call(
            function="matvec" if along else "vecmat",
            dtype=dtype,
            count=float(m) * k * n,
            rows=float(max(m, n) if along else k),
            operands=operands,
            into=into,
        )
    return Call(
        function="matmul",
        form=form,
        dtype=dtype,
        count=float(m) * k * n * batch,
        operands=operands,
        into=into,
        product=Product(m, n, k, batch),
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
) -> Call:
    """Any other function: `count` steps of its own kind, with the bytes that they read and write.

    since: bytes used since the last use of what it reads, and of what it writes.
    """
    ages = _ages(since, 2)
    operands = (Operand(reads, "read", ages[0]), Operand(writes, "write", ages[1]))
    return Call(function=function, form=form, dtype=dtype, count=count, rows=rows, operands=operands, into=into)


def lookup_call(
    function: str,
    *,
    dtype: str,
    count: float,
    table: float,
    length: float = 1.0,
    into: Into = "new",
    since: Sequence[float] = (),
) -> Call:
    """`count` elements, or rows of `length` elements, found by an index anywhere in `table` elements.

    since: bytes used since the last use of the table, the index and the result.
    """
    width = BYTES[dtype]
    ages = _ages(since, 3)
    size = count * length * width
    span = ages[0] if ages[0] is not None else table * width
    read = [Operand(count * BYTES["int64"], "read", ages[1])]
    if length > 1:  # beyond its first line a row is a stream
        read.append(Operand(size, "read", max(span, table * width)))
    return Call(
        function=function,
        dtype=dtype,
        count=count * length,
        rows=count if length > 1 else 1.0,
        operands=(*read, Operand(size, "write", ages[2])),
        into=into,
        lookups=count,
        span=table * width,
    )
