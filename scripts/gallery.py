"""Draw the pictures of docs/gallery.md and docs/tutorial.md: run the commands on their `yaml` blocks, and shrink what they draw.

    python scripts/gallery.py [NAME ...]    (else all)

PNG files become half as wide with 80 colours; SVG files are kept as they are.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(yaml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DRAWN = re.compile(r"^\$ (hwsim .*--plot )(\S+)$", re.MULTILINE)  # of a page whose commands are run: into docs/pictures
WIDTH = 620  # pixels


def main(wanted: list[str]) -> int:
    """Draw all pictures, or those that are wanted; return the exit status."""
    page = (ROOT / "docs" / "gallery.md").read_text("utf-8") + in_pictures((ROOT / "docs" / "tutorial.md").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for kind, text in FENCE.findall(page):
            if kind == "yaml":
                name = text.split("\n", 1)[0].removeprefix("# ")
                (place / name).write_text(text, "utf-8")
            else:
                for line in text.splitlines():
                    _run(line, place, wanted)
    return 0


def in_pictures(page: str) -> str:
    """Files and drawing commands of a page whose commands are run, as the gallery has them."""
    files = "".join(f"```yaml\n{text}```\n" for kind, text in FENCE.findall(page) if kind == "yaml")
    return files + "".join(f"```sh\n{command}pictures/{name}\n```\n" for command, name in DRAWN.findall(page))


def _run(line: str, place: Path, wanted: list[str]) -> None:
    words = shlex.split(line)
    target = ROOT / "docs" / words[-1]
    if wanted and target.stem not in wanted and target.name not in wanted:
        return
    drawn = place / target.name
    program = Path(sys.executable).with_name("hwsim")
    subprocess.run([program, *words[1:-1], drawn], cwd=place, check=True, stdout=subprocess.DEVNULL)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".png":
        shrink(drawn, target, 1080 if target.parent.name == "pictures" else WIDTH)
    else:
        target.write_bytes(drawn.read_bytes())
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")


def shrink(drawn: Path, target: Path, width: int) -> None:
    """A picture at most that wide, in few colours."""
    picture = Image.open(drawn).convert("RGB")
    if picture.width > width:
        picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    picture.quantize(80, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
