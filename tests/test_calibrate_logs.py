"""Logs of benchmarks become parts that hwsim accepts and that take the times the logs say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.devices import Cpu, Work
from hwsim.origins import Origin
from hwsim.results.error_weights import error_of_number
from hwsim.results.errors import table
from hwsim.results.interval import spread_of
from hwsim_calibrate.logs import TOOLS, Log, LogOptions, Result, fit_logs, read_log
from hwsim_calibrate.logs.result import REPEATS, number_of
from hwsim_calibrate.logs.target_part import find_target_part
from tests import command
from tests.calibrate_logs import FOLDER, LOGS, MODELS, PARTS


def fitted(tool: str, *names: str, part: str = "", sockets: int = 0, model: str = "") -> Result:
    base = find_target_part(part, TOOLS[tool].part_kinds, Path()) if part else None
    return fit_logs(tool, [read_log(FOLDER / name) for name in names], LogOptions(base, sockets, model))


def cpu_of(result: Result, folder: Path) -> Cpu:
    file = folder / "cpu.yaml"
    file.write_text(result.yaml())
    model = load_machine({"hwsim": "machine/1", "parts": {"cpu": {"kind": "cpu", "use": str(file)}}}).devices["cpu"].model
    assert isinstance(model, Cpu)
    return model


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_s_log_becomes_a_file_that_is_accepted(tool: str, tmp_path: Path) -> None:
    output = tmp_path / "made.yaml"
    part = ["--part", PARTS[tool]] if tool in PARTS else []
    part += ["--model", MODELS[tool]] if tool in MODELS else []
    command.hwsim("import", tool, FOLDER / LOGS[tool], *part, "-o", output)
    command.hwsim("check", output)
    command.hwsim("show", output)
    again = ["import", tool, str(FOLDER / LOGS[tool]), *part, "-o", str(output)]
    command.hwsim(*again)  # its own file is written over, and no other
    output.write_text("hwsim: part/1\nkind: disk\nname: by hand\n")
    assert "exists and is not a fitted file" in command.hwsim(*again, code=2).output
    assert output.read_text().endswith("by hand\n")


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if "model" not in TOOLS[tool].options])
def test_every_fitted_number_has_its_source_and_how_sure_it_is(tool: str) -> None:
    result = fitted(tool, LOGS[tool], part=PARTS.get(tool, ""))
    numbers = result.numbers()
    assert numbers
    assert result.content()["source"] == "measured"
    assert result.content()["ref"].endswith(f"; {LOGS[tool]}")
    for number in numbers.values():
        assert number.spread > 0
        said = number.content()
        assert said["points"] >= 1
        assert (number.points > 1) == ("ci95" in said)
        if number.interval is not None:
            assert number.interval[0] <= number.value <= number.interval[1]
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["hwsim"] == "fit/1"
    assert set(document["numbers"]) == set(numbers)


def test_a_cpu_fitted_to_stream_takes_stream_s_times(tmp_path: Path) -> None:
    result = fitted("stream", "stream-56.txt", "stream-1.txt", part="xeon-8480")
    cpu = cpu_of(result, tmp_path)
    array = 3.2e9
    for reads, cores, rate in ((1, None, 166.5e9), (2, None, 188.9e9), (1, 1, 9.42e9), (2, 1, 10.44e9)):
        work = Work(flop=1.0, reads=reads * array, writes=array, cores=cores, working_set=10 * array)
        cost = cpu.compute("cpu", work).demand
        seconds = max(cost.floor, *(amount / (cpu.cores if name == "cpu.cores" else 1) for name, amount in cost.amounts))
        assert (reads + 1) * array / seconds == pytest.approx(rate, rel=0.035)


def test_a_link_fitted_to_iperf3_carries_as_much(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").write_text(fitted("iperf3", "iperf3.json", part="25gbe").yaml())
    computer = {"kind": "cpu", "class": "ideal", "cores": 1, "flop": {"fp64": "1 GFLOP/s"}, "memory": {"bandwidth": "1 TB/s"}}
    machine = {
        "hwsim": "machine/1",
        "parts": {"a": computer, "b": computer},
        "links": [{"name": "lan", "between": ["a", "b"], "kind": "ethernet", "use": str(tmp_path / "link.yaml")}],
    }
    program = [{"send": {"from": "a", "to": "b", "bytes": "30 GB", "protocol": "tcp"}}]
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "program": program})
    assert 30e9 / run.makespan_s == pytest.approx(24.31e9 / 8, rel=0.002)


def test_two_sockets_are_told_from_one() -> None:
    found = fitted("mlc", "mlc.txt", part="xeon-8480").content()
    assert found["numa"]["efficiency"]["value"] == "88.07 %"  # 541 GB/s of two sockets with 307 GB/s each
    assert found["numa"]["remote_latency"]["value"] == "81.30 ns"
    assert found["memory"]["latency"]["value"] == "112.9 ns"
    with pytest.raises(hwsim.SpecError, match=r"541\.1 GB/s per socket, but xeon-8480 has 307\.2 GB/s"):
        fitted("mlc", "mlc.txt", part="xeon-8480", sockets=1)


def test_both_directions_are_counted_apart() -> None:
    one, both = (fitted("ib-write-bw", name).numbers() for name in ("ib_write_bw.txt", "ib_write_bw-both.txt"))
    assert one["bandwidth"].value == pytest.approx(48.9e9, rel=0.005)  # MiB/s
    assert both["bandwidth"].value == pytest.approx(48.1e9, rel=0.005)  # Gb/s, peak 0
    assert both["overhead.rdma"].value == pytest.approx(120e-9, rel=0.03)


def test_a_gpu_s_memory_is_what_babelstream_reached() -> None:
    found = fitted("babelstream", "babelstream.txt", part="h100-sxm")
    assert found.numbers()["sustained.copy"].value == pytest.approx(2.608 / 3.35, rel=0.002)
    assert found.numbers()["sustained.read"].value == pytest.approx(2.951 / 3.35, rel=0.002)
    assert all(abs(row.error) < 0.01 for row in found.rows)  # add and triad were not fitted
    alone = fitted("babelstream", "babelstream.csv").content()
    assert "streaming stores" in alone["notes"]
    assert alone["bandwidth"]["value"] == "1.404 TB/s"


def test_a_server_s_figures_are_expectations_of_a_workload() -> None:
    rate = fitted("vllm", "vllm.json").content()
    assert rate["infer"] | {"parallel": 0} == {
        "model": "llama-3-8b", "framework": "vllm", "parallel": 0, "requests": 200, "arrivals": {"poisson": "10 1/s"},
        "prompt": 1024, "output": 128,
    }  # fmt: skip
    assert rate["expect"]["tpot_mean"] == "9.000 ms +- 5.1 %"
    limited = fitted("vllm", "vllm.txt", model="llama-3-8b")
    assert limited.content()["infer"]["arrivals"] == {"clients": 32}
    figures = {"requests_per_s", "tokens_per_s", "tpot_p50", "ttft_mean", "ttft_p50", "ttft_p99"}  # a mean of 0, a p99 of N/A
    assert set(limited.content()["expect"]) == figures


def test_clients_of_other_tools_say_the_same() -> None:
    found = {tool: fitted(tool, LOGS[tool], model="llama-3-8b").content() for tool in ("aiperf", "guidellm", "inference-perf")}
    assert found["aiperf"]["infer"]["arrivals"] == {"clients": 32}
    assert found["aiperf"]["expect"]["ttft_mean"] == "412.0 ms +- 7.9 %"
    for tool in ("guidellm", "inference-perf"):
        assert found[tool]["infer"]["arrivals"] == ({"every": "200.0 ms"} if tool == "guidellm" else {"poisson": "5 1/s"})
        assert found[tool]["expect"]["tpot_p99"] == "11.00 ms +- 21 %"
        assert found[tool]["expect"]["latency_mean"].startswith("1.200 s")


def test_lengths_are_each_request_s_where_the_log_has_them() -> None:
    content = json.loads((FOLDER / "vllm.json").read_text())
    content |= {"input_lens": [1000, 1048] * 100, "output_lens": [128] * 200}
    infer = fit_logs("vllm", [Log("a", json.dumps(content))], LogOptions()).content()["infer"]
    assert infer["prompt"] == {"values": [1000, 1048] * 100}
    assert infer["output"] == 128
    content = {key: value for key, value in content.items() if not key.endswith("_lens")}
    content |= {"random_input_len": 2047, "random_output_len": 512, "random_range_ratio": 0.0, "backend": "sglang"}
    result = fit_logs("vllm", [Log("a", json.dumps(content))], LogOptions())
    assert result.content()["infer"]["prompt"] == {"uniform": [1, 2047]}
    assert result.content()["infer"]["framework"] == "sglang"
    assert any("output lengths" in note for note in result.left)


def test_a_service_is_held_against_the_log(tmp_path: Path) -> None:
    (tmp_path / "served.yaml").write_text(fitted("vllm", "vllm.json").yaml())
    # the time of first tokens, which is made up, is not met
    shown = command.hwsim("simulate", "dgx-h100", tmp_path / "served.yaml", "--no-interval", code=3)
    assert "tpot_mean 9.000 ms ± 5.1 %: met" in shown.output


def test_runs_together_say_how_far_they_are_apart() -> None:
    text = (FOLDER / "iperf3.json").read_text()
    logs = [Log(str(rate), text.replace("24310000000.0", f"{rate}e9")) for rate in (24.31, 23.0, 22.1)]
    number = fit_logs("iperf3", logs, LogOptions()).numbers()["efficiency"]
    assert number.value == pytest.approx(23.0 / 24.75, rel=0.002)
    assert REPEATS < number.spread < 0.08
    assert number.points == 3
    assert number_of([2.0, 2.1], "s", separate_runs=True).repeats is None  # two runs are too few to say


def test_the_spread_of_runs_is_the_one_that_intervals_assume() -> None:
    regime = error_of_number("bandwidth", Origin("measured", "as a log says"))
    assert regime is not None
    assert spread_of(regime, table()) == REPEATS


def test_a_part_of_one_s_own_is_used_from_the_output_s_folder(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("hwsim: part/1\nkind: nic\nbandwidth: 400 Gb/s\nlanes: 16\n")
    output = tmp_path / "parts" / "nic.yaml"
    output.parent.mkdir()
    arguments = ["import", "ib-write-bw", str(FOLDER / "ib_write_bw.txt"), "--part", str(tmp_path / "own.yaml")]
    command.hwsim(*arguments, "-o", output)
    assert "use: ../own.yaml" in output.read_text()
    command.hwsim("check", output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("osu", "osu.txt", "--part", "xeon-8480"), "`--part` is not available for osu"),
        (("osu", "osu.txt", "--sockets", "2"), "`--sockets` is not available for osu"),
        (("stream", "stream-56.txt", "--model", "gpt2"), "`--model` is not available for stream"),
        (("stream", "stream-56.txt", "--part", "h100-sxm"), "no cpu called 'h100-sxm'"),
        (("stream", "stream-56.txt", "stream-56.txt"), "the log is identical to"),
        (("stream", "babelstream.txt"), "the file contains no output of STREAM"),
        (("stream", "stream-56.txt", "--part", "laptop"), "no cpu called"),
        (("stream", "stream-56.txt", "--part", "xeon-e5-2690"), "per socket, but xeon-e5-2690 has"),
        (("vllm", "vllm.txt"), "does not contain the model"),
        (("ib-write-bw", "ib_write_bw.txt", "ib_write_bw-both.txt"), "import the logs of each test separately"),
    ],
)
def test_mistakes_of_a_user_are_said_at_once(arguments: tuple[str, ...], words: str) -> None:
    given = [str(FOLDER / argument) if "." in argument else argument for argument in arguments]
    shown = command.hwsim("import", *given, code=2)
    assert words in shown.output


def printed(kind: str, rows: dict[str, float], array: float, threads: int = 0) -> str:
    """Rates in MB/s as STREAM or BabelStream print them."""
    arrays = {"Copy": 2, "Scale": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}
    if kind == "stream":
        head = f"Array size = {array / 8:.0f} (elements), Offset = 0 (elements)\nNumber of Threads counted = {threads}\n"
        times = {name: arrays[name] * array / rate / 1e6 for name, rate in rows.items()}
        return head + "".join(
            f"{name}: {rate} {times[name]:.6f} {times[name]:.6f} {times[name]:.6f}\n" for name, rate in rows.items()
        )
    return "Function    MBytes/sec  Min (sec)   Max         Average\n" + "".join(
        f"{name}  {rate} 0.00031 0.00032 0.00032\n" for name, rate in rows.items()
    )


def test_a_published_stream_with_streaming_stores_counts_no_write_allocate() -> None:
    """Two EPYC 9654, compiled with -fnt-store (OCI HPC performance tips, STREAM on BM.Standard.E5.192: 921.6 GB/s in all)."""
    text = printed("stream", {"Copy": 685041.8, "Scale": 690053.6, "Add": 723580.5, "Triad": 718799.1}, 430080000 * 8, 96)
    found = fit_logs("stream", [Log("a", text)], LogOptions(sockets=2))
    assert "streaming stores" in found.content()["notes"]
    assert 0.74 < found.numbers()["bandwidth"].value * 2 / 921.6e9 < 0.79


def test_a_published_dot_product_is_no_measure_of_reading() -> None:
    """A100 of 80 GB (EPCC's BabelStream page, Tursa): its dot product waits for the sum. The library's part says 85.3 %."""
    rows = {"Copy": 1709360.8, "Mul": 1676181.608, "Add": 1715845.543, "Triad": 1724827.354, "Dot": 1586905.948}
    found = fit_logs(
        "babelstream",
        [Log("a", printed("babelstream", rows, 268.4e6))],
        LogOptions(find_target_part("a100-sxm-80gb", ("gpu",), Path())),
    )
    read = found.numbers()["sustained.read"]
    assert read.value == pytest.approx(0.853, rel=0.03)
    assert read.spread > 0.05
    assert any("dot product" in sentence for sentence in found.left)


def test_a_copy_of_the_library_is_left_out() -> None:
    """Two EPYC 7742 (EPCC's BabelStream page, ARCHER2): the compiler makes copy a call of memcpy."""
    rows = {"Copy": 421983.4, "Mul": 295653.136, "Add": 319003.459, "Triad": 293900.783, "Dot": 340542.635}
    found = fit_logs("babelstream", [Log("a", printed("babelstream", rows, 268.4e6))], LogOptions(sockets=2))
    assert any("1.43x as fast as mul" in sentence for sentence in found.left)
    assert found.numbers()["bandwidth"].value == pytest.approx(310e9 / 2, rel=0.05)
