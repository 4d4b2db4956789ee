#!/usr/bin/env python3
"""Checks that lines fit, and lists files above 500 lines: a question for review, not a failure.

A file stays whole around one idea. Split it where its name no longer fits, not where a limit is.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED_SUFFIXES = {".h", ".cc", ".py", ".js", ".mjs", ".css"}
MAX_LINE_COLUMNS = 125  # columns
MAX_FILE_LINES = 500  # lines


def tracked_files() -> list[Path]:
    patterns = [f"*{suffix}" for suffix in sorted(CHECKED_SUFFIXES)]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    file_listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in file_listing.splitlines() if (ROOT / name).exists()]


def main() -> int:
    problems = []
    for path in tracked_files():
        name = str(path.relative_to(ROOT))
        lines = path.read_text().splitlines()
        if len(lines) > MAX_FILE_LINES:
            print(f"check_sizes: {name} has {len(lines)} lines: consider splitting it")
        problems += [
            f"{name}:{number}: {len(line)} columns"
            for number, line in enumerate(lines, 1)
            if len(line) > MAX_LINE_COLUMNS
        ]
    for problem in problems:
        print(f"check_sizes: {problem}", file=sys.stderr)
    print(f"check_sizes: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
