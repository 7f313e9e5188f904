"""Links of kernels to calls and ops, against a stack that walks every slice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hwsim.importers.recording import SliceFacts, What
from hwsim.importers.slice_links import link
from tests.recorded import Row, rank

SAID = SliceFacts(shapes=((8, 4), (4, 2)))
ROWS = [
    Row(What.MARK, "ProfilerStep#3", "main", 0, 100),
    Row(What.OP, "mine::layer", "main", 10, 50),
    Row(What.OP, "aten::linear", "main", 12, 40, facts=SAID),
    Row(What.OP, "aten::addmm", "main", 14, 30, facts=SAID),
    Row(What.OP, "aten::out", "main", 20, 10),
    Row(What.CALL, "cudaLaunchKernel", "main", 22, 5, 71),
    Row(What.KERNEL, "gemm", "7", 26, 40, 71),
    Row(What.CALL, "cudaMemcpyAsync", "main", 70, 5, 72),
    Row(What.COPY, "Memcpy HtoD", "7", 80, 4, 72),
    Row(What.KERNEL, "lost", "7", 90, 4, 99),
]


def test_a_kernel_finds_its_call_and_the_ops_around_it() -> None:
    one = rank(ROWS)
    linked = link(one)
    names = [one.names[name] for name in one.slices.name]
    at = {name: place for place, name in enumerate(names)}

    def around(name: str) -> list[str]:
        found = (column[at[name]] for column in (linked.call, linked.op, linked.shaped, linked.outer))
        return [names[index] if index >= 0 else "" for index in found]

    assert around("gemm") == ["cudaLaunchKernel", "aten::out", "aten::addmm", "aten::linear"]
    assert around("Memcpy HtoD") == ["cudaMemcpyAsync", "", "", ""]
    assert around("lost") == ["", "", "", ""]
    assert around("aten::out") == ["", "aten::addmm", "aten::addmm", "aten::linear"]
    assert names[linked.parent[at["mine::layer"]]] == "ProfilerStep#3"


spans = st.lists(
    st.tuples(
        st.sampled_from([What.OP, What.PYTHON, What.MARK, What.CALL]),
        st.sampled_from("ab"),
        st.integers(0, 30),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=40,
)


@given(spans)
def test_parents_are_those_of_a_stack(rows: list[tuple[What, str, int, int]]) -> None:
    one = rank(Row(what, f"{what.name} {n}", lane, start, duration) for n, (what, lane, start, duration) in enumerate(rows))
    linked, slices = link(one), one.slices
    inside = [1, 1, 0, 2]
    order = sorted(range(len(slices)), key=lambda i: (slices.start[i], -slices.duration[i], inside[slices.what[i]]))
    assert (linked.ends <= slices.end).all()
    stacks: dict[int, list[int]] = {}
    for index in order:
        stack = stacks.setdefault(int(slices.lane[index]), [])
        while stack and linked.ends[stack[-1]] <= slices.start[index]:
            stack.pop()
        assert linked.parent[index] == (stack[-1] if stack else -1)
        if stack:
            assert linked.ends[index] <= max(linked.ends[stack[-1]], slices.start[index])
        stack.append(index)
