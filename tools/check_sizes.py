#!/usr/bin/env python3
"""Checks that files stay of a size that people enjoy: headers up to 150 lines, sources up to 350, and lines that fit.

A file that needs more stands in ALLOWED with its reason; the list may only shrink.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {".h": 150, ".cc": 350, ".py": 350, ".js": 350, ".mjs": 350, ".css": 350}
WIDTH = dict.fromkeys(LIMITS, 125)
ALLOWED: dict[str, str] = {}


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *(f"*{suffix}" for suffix in LIMITS)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).exists()]


def main() -> int:
    problems = []
    for path in tracked_files():
        name = str(path.relative_to(ROOT))
        lines = path.read_text().splitlines()
        limit = LIMITS[path.suffix]
        if len(lines) > limit and name not in ALLOWED:
            problems.append(f"{name} has {len(lines)} lines; {limit} is the limit: split it where its name no longer fits")
        problems += [
            f"{name}:{number}: {len(line)} columns"
            for number, line in enumerate(lines, 1)
            if len(line) > WIDTH[path.suffix]
        ]
    for problem in problems:
        print(f"check_sizes: {problem}", file=sys.stderr)
    print(f"check_sizes: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
