"""The build of hwsim's wheel: with the compiled core where there is a C++ compiler, and without it where there is none.

`core/src` becomes one library in `hwsim/_core`, beside the hashes that hwsim compares before it loads it. The library is plain C
without Python in it, so that a wheel of a platform serves every Python. Without a compiler, or where the compiler fails, the
wheel is a pure one: hwsim then plays everything by itself, more slowly, and `hwsim doctor` says so.

HWSIM_CORE=never leaves the core out, and HWSIM_CORE=always lets the build fail where it cannot be compiled. CXX is the compiler,
and CXXFLAGS are more words for it, such as `-Werror` or `-fsanitize=address`.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY: Final = "hwsim_core.dll" if sys.platform == "win32" else "hwsim_core.so"
# -ffp-contract=off: a product and a sum are rounded one after the other, as in Python; gnu++20: integers of 128 bits
FLAGS: Final = ("-std=gnu++20", "-O3", "-DNDEBUG", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-ffp-contract=off")
OF_SYSTEM: Final = {"win32": ("-fms-runtime-lib=static",), "darwin": ("-fPIC", "-flto")}  # Python brings no msvcp140.dll
OF_OTHERS: Final = ("-fPIC", "-flto", "-static-libstdc++", "-static-libgcc")


class CoreHook(BuildHookInterface):  # type: ignore[type-arg]  # of what configures the builder, which this never touches
    """Compiles `core/src` into `hwsim/_core`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files of a wheel are gathered. Raises RuntimeError where it must and cannot."""
        choice = os.environ.get("HWSIM_CORE", "auto")
        if self.target_name != "wheel" or choice == "never":
            return
        root = Path(self.root)
        home = root / "hwsim" / "_core"
        try:
            compile_core(root / "core" / "src", home)
        except (OSError, subprocess.CalledProcessError) as error:
            why = (getattr(error, "stderr", "") or str(error)).strip()
            if choice == "always":
                raise RuntimeError(f"the compiled core cannot be built: {why}") from error
            self.app.display_warning(
                f"hwsim is built without its compiled core, and large runs take up to ten times as long: {why}"
            )
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"
        if version != "editable":
            build_data["force_include"].update({str(path): f"hwsim/_core/{path.name}" for path in home.iterdir()})


def compile_core(sources: Path, home: Path) -> None:
    """Make the library and its hashes, unless those of the same sources, platform and words are there.

    Raises:
        FileNotFoundError: there is no compiler, or there are no sources.
        CalledProcessError: the compiler's own message, in its `stderr`.
    """
    compiler = next((found for name in (os.environ.get("CXX") or "c++", "g++", "clang++") if (found := shutil.which(name))), None)
    if compiler is None:
        raise FileNotFoundError("no C++ compiler was found")
    if not sources.is_dir():
        raise FileNotFoundError("its sources are not there")
    more = shlex.split(os.environ.get("CXXFLAGS", ""))
    is_checked = any(word.startswith("-fsanitize") for word in more)
    words = [compiler, *FLAGS, *(("-fPIC",) if is_checked else OF_SYSTEM.get(sys.platform, OF_OTHERS)), *more]
    made_of = hash_of(sources), sha256(" ".join((_platform(), *words)).encode()).hexdigest()
    library, hashes = home / LIBRARY, home / "hashes.txt"
    if library.exists() and hashes.exists() and hashes.read_text("ascii").split() == [made_of[0], _of_file(library), made_of[1]]:
        return
    home.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        made = {path: Path(folder, f"{path.parent.name}-{path.stem}.o") for path in sorted(sources.rglob("*.cpp"))}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda path: _run(*words, "-c", path, "-o", made[path]), made))
        whole = Path(folder, LIBRARY)
        _run(*words, "-shared", *made.values(), "-o", whole)
        shutil.copy(whole, library.with_suffix(".new"))
    library.with_suffix(".new").replace(library)  # at once: a process that runs keeps the one it has loaded
    hashes.write_text(f"{made_of[0]} {_of_file(library)} {made_of[1]}\n", "ascii")


def hash_of(sources: Path) -> str:
    """The hash of all sources, by name; the ends of lines do not count."""
    files = {path.relative_to(sources).as_posix(): path for path in sources.rglob("*") if path.suffix in (".cpp", ".h")}
    rows = [(name, sha256(files[name].read_bytes().replace(b"\r\n", b"\n")).hexdigest()) for name in sorted(files)]
    return sha256("".join(f"{name} {row}\n" for name, row in rows).encode()).hexdigest()


def _of_file(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


def _platform() -> str:
    """The tag of this platform. On a Mac the library is of one architecture, also where Python is of two."""
    return sysconfig.get_platform().replace("universal2", platform.machine()).replace("-", "_").replace(".", "_")
