"""Write what the parts of the library have in common into the files of their classes: `python scripts/classes.py [--check]`.

See `calibrate/published/classes.py`, which computes it, and leaves parts out for the study of bare parts.
"""

from __future__ import annotations

import sys

from published.classes import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
