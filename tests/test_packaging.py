"""What a user gets: the wheel, and what `import hwsim` and a small run cost and offer."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import BytesHeaderParser
from pathlib import Path

import pytest

import hwsim
from hwsim.cli.doctor import EXTRAS
from hwsim.engine import core

ROOT = Path(__file__).resolve().parent.parent
DATA = ("machines", "workloads")
PACKAGES = {"hwsim": ROOT / "hwsim", "hwsim_calibrate": ROOT / "calibrate" / "hwsim_calibrate"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as pip builds it but without an environment of its own."""
    return built(ROOT, tmp_path_factory.mktemp("wheel"), HWSIM_CORE="never")


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as installed: no project directory around it."""
    directory = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def built(tree: Path, directory: Path, **more: str) -> Path:
    """The wheel of a tree."""
    run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)], tree, **more)
    (wheel,) = directory.glob("*.whl")
    return wheel


def run(command: list[str], cwd: Path, **more: str) -> str:
    """Standard output; a failure shows both streams."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **more}, capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    if done.returncode:
        pytest.fail(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


def as_installed(unpacked: Path, cwd: Path, *arguments: str) -> str:
    return run([sys.executable, "-X", "utf8", *arguments], cwd, PYTHONPATH=str(unpacked))


def shipped(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_under(directory: Path) -> set[str]:
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not {"__pycache__", "_core"} & {*path.parts} and path.name != ".DS_Store"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_holds_every_module(wheel: Path, package: str) -> None:
    modules = {f"{package}/{name}" for name in files_under(PACKAGES[package])}
    assert modules <= shipped(wheel)
    assert f"{package}/py.typed" in modules


@pytest.mark.parametrize("kind", DATA)
def test_the_wheel_holds_the_library(wheel: Path, kind: str) -> None:
    assert {f"hwsim/_data/{kind}/{name}" for name in files_under(ROOT / kind)} <= shipped(wheel)


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    roots = {name.split("/")[0] for name in shipped(wheel)}
    assert roots == {*PACKAGES, f"hwsim-{hwsim.__version__}.dist-info"}
    assert not [name for name in shipped(wheel) if "__pycache__" in name or name.startswith("hwsim/tests")]


def test_the_metadata_says_what_pyproject_says(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        metadata = BytesHeaderParser().parsebytes(archive.read(f"hwsim-{hwsim.__version__}.dist-info/METADATA"))
        scripts = archive.read(f"hwsim-{hwsim.__version__}.dist-info/entry_points.txt").decode()
    assert metadata["Version"] == hwsim.__version__
    assert metadata["Requires-Python"] == project["requires-python"]
    assert [f"{name} = {place}" for name, place in project["scripts"].items()] == scripts.split("\n")[1:-1]


def test_hwsim_and_the_change_log_have_one_version() -> None:
    top = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert top is not None
    assert hwsim.__version__.partition(".dev")[0] == top[1]


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(wheel: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)], ROOT)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert shipped(built(tree, tmp_path, HWSIM_CORE="never")) == shipped(wheel)


@pytest.mark.skipif(not core.is_there(), reason="nothing can be compiled here, perhaps")
def test_where_it_can_be_compiled_the_wheel_holds_the_core_and_is_of_a_platform(wheel: Path, tmp_path: Path) -> None:
    whole = built(ROOT, tmp_path, HWSIM_CORE="always")  # as it is compiled already, for this checkout
    more = shipped(whole) - shipped(wheel)
    assert {Path(name).suffix for name in more if name.startswith("hwsim/_core/")} == {".txt", core.library().suffix}
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "-py3-none-" in whole.name
    assert not whole.name.endswith("-any.whl")


@pytest.mark.parametrize(("choice", "code"), [("auto", 0), ("always", 1)])
def test_without_a_compiler_the_wheel_is_a_pure_one_or_refused(choice: str, code: int, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "_core", "docs", "tests", "build", "__pycache__"))
    shutil.copy(ROOT / ".gitignore", tree)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=tree, env={**os.environ, "HWSIM_CORE": choice, "PATH": "", "CXX": ""},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert "no C++ compiler was found" in done.stdout + done.stderr
    assert [path.name.endswith("-py3-none-any.whl") for path in tmp_path.glob("*.whl")] == [True] * (1 - code)


def test_an_installed_hwsim_runs_what_it_ships_from_any_directory(unpacked: Path, tmp_path: Path) -> None:
    where = as_installed(unpacked, tmp_path, "-c", "import hwsim; print(hwsim.__file__)")
    assert Path(where.strip()).is_relative_to(unpacked)
    assert as_installed(unpacked, tmp_path, "-m", "hwsim", "--version").strip().endswith(hwsim.__version__)
    assert "time" in as_installed(unpacked, tmp_path, "-m", "hwsim", "simulate", "d2l-laptop", "d2l/async-loop")


def test_an_installed_hwsim_finds_its_measurements_and_records_and_compares(unpacked: Path, tmp_path: Path) -> None:
    assert "kernels" in as_installed(unpacked, tmp_path, "-m", "hwsim", "calibrate", "show", "epyc-zen3-vm-2core")
    (tmp_path / "step.py").write_text("import numpy as np\na = np.ones((64, 64))\nfor _ in range(9):\n    b = a @ a\n", "utf-8")
    as_installed(unpacked, tmp_path, "-m", "hwsim", "record", "step.py", "--runs", "2")
    assert "matmul@4" in as_installed(unpacked, tmp_path, "-m", "hwsim", "compare", "laptop", "step.yaml")


def test_every_name_hwsim_offers_can_be_had() -> None:
    assert {name for name in hwsim.__all__ if getattr(hwsim, name) is None} == set()
    assert set(hwsim.__all__) <= set(dir(hwsim))


MODULES = {"cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy", "nvidia-ml-py": "pynvml", "ipykernel": "nbclient"}  # which starts it
RUNNING = (ROOT / "scripts", ROOT / "tests")  # notebooks


def is_imported(module: str, text: str) -> bool:
    """Whether the text of a file imports a top-level module."""
    if module not in text or not re.search(rf"\b(?:import|from)\b.*\b{module}\b|\(\s*[\"']{module}", text):
        return False
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=several):
                named = [alias.name for alias in several]
            case ast.ImportFrom(module=str(name)) | ast.Call(args=[ast.Constant(value=str(name)), *_]):  # import_module("pandas")
                named = [name]
            case _:
                named = []
        if module in [name.partition(".")[0] for name in named]:
            return True
    return False


def test_every_extra_for_users_is_imported_somewhere() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    texts = {folder: [path.read_text("utf-8") for path in folder.rglob("*.py")] for folder in (*PACKAGES.values(), *RUNNING)}
    for extra in extras.keys() - {"test", "docs"}:
        folders = texts if extra == "labs" else PACKAGES.values()
        for wanted in extras[extra]:
            name = re.split(r"[<>=\[~ ]", wanted)[0]
            module = MODULES.get(name, name)
            found = any(is_imported(module, text) for folder in folders for text in texts[folder])
            assert found, f"[{extra}] installs {name}, and nothing imports it"
    assert set(EXTRAS) == extras.keys() - {"test", "docs", "gpu13"}, "hwsim doctor"
    said = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`\[([a-z0-9]+)\]`", said[said.index("extras:") : said.index("needs none", said.index("extras:"))]))
    assert named == extras.keys() - {"test"}


ROUNDABOUT = ("numpy.ma", "difflib", "tempfile", "html", "simpy", "matplotlib", "hwsim.families", "hwsim.studies", "hwsim.models")
SERVED = ("hwsim.families.serving.results.statistics", "hwsim.failures", "hwsim.views.summary.document")


@pytest.mark.parametrize("command", ["simulate", "explain"])
def test_a_small_run_imports_nothing_by_the_way(command: str) -> None:
    script = (
        "import sys; from hwsim.cli import main\n"
        f"try: main(['{command}', 'd2l-laptop', 'd2l/async-loop', '--set', 'n=10'])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = run.stderr.split()
    assert "hwsim.engine" in loaded
    tried = ("simpy", "tempfile") if command == "explain" else ()  # `explain` plays the run with changes
    unasked = ROUNDABOUT if command == "explain" else (*ROUNDABOUT, *SERVED)
    assert [name for name in unasked if name in loaded and name not in tried] == []
