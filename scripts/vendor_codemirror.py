"""Make the editor of the explorer's page: CodeMirror 6 as one ES module, from the versions that its TOML pins.

python scripts/vendor_codemirror.py            bundle again, with the licences of every package in it, and note the hash
python scripts/vendor_codemirror.py --check    bundle again into a temporary folder and compare: exit status 1 where it differs
python scripts/vendor_codemirror.py --lock     compare what lies here with the TOML, without a network: tests do that

The first two need node, npm and the registry of npm. Users run none of them: the module lies in the repository and in the wheel.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).resolve().parent.parent / "hwsim" / "explorer" / "page"
PINNED: Final = PAGE / "codemirror.toml"
ENTRY: Final = """
export {EditorView, keymap, lineNumbers, drawSelection, highlightActiveLine} from "@codemirror/view";
export {defaultKeymap, history, historyKeymap} from "@codemirror/commands";
export {autocompletion, completionKeymap} from "@codemirror/autocomplete";
export {lintGutter, setDiagnostics} from "@codemirror/lint";
export {syntaxHighlighting, HighlightStyle} from "@codemirror/language";
export {yaml} from "@codemirror/lang-yaml";
export {tags} from "@lezer/highlight";
"""


def main() -> int:
    """Bundle, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--lock", action="store_true", help="compare hash, size and licences of what lies here; no network")
    given = parser.parse_args()
    pinned = tomllib.loads(PINNED.read_text("utf-8"))
    if given.lock:
        wrong = different(pinned, PAGE)
        print("\n".join(wrong) or f"{pinned['file']}: as pinned")
        return int(bool(wrong))
    check = given.check
    with tempfile.TemporaryDirectory() as folder:
        module, licences = bundled(pinned, Path(folder))
    found = sha256(module).hexdigest()
    if check:
        same = module == (PAGE / pinned["file"]).read_bytes() and found == pinned["sha256"]
        print(f"{pinned['file']}: {'as pinned' if same else f'differs, {found}'}")
        return int(not same)
    (PAGE / pinned["file"]).write_bytes(module)
    (PAGE / pinned["licences"]).write_text(licences, "utf-8")
    text = re.sub(r'^sha256 = ".*"$', f'sha256 = "{found}"', PINNED.read_text("utf-8"), flags=re.MULTILINE)
    PINNED.write_text(re.sub(r"^bytes = .*$", f"bytes = {len(module)}", text, flags=re.MULTILINE), "utf-8")
    print(f"{pinned['file']}: {len(module):,} bytes, {found}")
    return 0


def different(pinned: dict[str, Any], page: Path) -> list[str]:
    """What of the module and the licences in a folder is not what the TOML pins."""
    module, licences = (page / pinned["file"]).read_bytes(), (page / pinned["licences"]).read_text("utf-8")
    found = {"sha256": sha256(module).hexdigest(), "bytes": len(module)}
    wrong = [f"{pinned['file']}: {key} is {value}, not {pinned[key]}" for key, value in found.items() if value != pinned[key]]
    if not module.startswith(b"/* CodeMirror 6 and what it needs, MIT: " + pinned["licences"].encode()):
        wrong.append(f"{pinned['file']}: it does not begin with where its licences are")
    heads = re.findall(r"^(\S+) (\d\S*), (.+)$", licences, re.MULTILINE)
    there, wanted = {name: version for name, version, _ in heads}, pinned["packages"]
    wrong += [f"{name}: the licences have {there.get(name)}, pinned is {wanted.get(name)}" for name in sorted({*there, *wanted})
              if there.get(name) != wanted.get(name)]  # fmt: skip
    wrong += [f"{name}: its licence is {licence}" for name, _, licence in heads if licence != "MIT"]
    return wrong + [
        f"{name}: {version} is no version" for name, version in wanted.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)
    ]


def bundled(pinned: dict[str, Any], folder: Path) -> tuple[bytes, str]:
    """The module, and the licences of all packages in it."""
    wanted = pinned["packages"] | pinned["bundler"]
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}), "utf-8")
    run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)
    (folder / "entry.js").write_text(ENTRY, "utf-8")
    options = ["--bundle", "--format=esm", "--minify", "--legal-comments=none", "--charset=utf8", "--metafile=meta.json"]
    banner = f"--banner:js=/* CodeMirror 6 and what it needs, MIT: {pinned['licences']} */"
    run([str(folder / "node_modules" / ".bin" / "esbuild"), "entry.js", *options, banner, "--outfile=out.js"], folder)
    inputs = json.loads((folder / "meta.json").read_text("utf-8"))["inputs"]
    inside = {found[1] for name in inputs if (found := re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", name))}
    if missing := inside ^ set(pinned["packages"]):
        sys.exit(f"{PINNED.name} must name exactly the packages of the bundle; it differs by {', '.join(sorted(missing))}")
    return (folder / "out.js").read_bytes(), "\n\n".join(
        licence(folder / "node_modules" / name) for name in sorted(inside)
    ) + "\n"


def licence(package: Path) -> str:
    """The package's name, version and licence as it ships it."""
    about = json.loads((package / "package.json").read_text("utf-8"))
    (text,) = (path for path in package.iterdir() if re.match(r"licen[cs]e", path.name, re.IGNORECASE))
    return f"{about['name']} {about['version']}, {about['license']}\n\n{text.read_text('utf-8').strip()}"


def run(command: list[str], folder: Path) -> None:
    """Run or stop with what it said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
