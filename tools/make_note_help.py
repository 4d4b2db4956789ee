#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the explanations of notes on the HTML page, web/src/note_texts.js, from docs/reference/diagnostics.md.

    tools/make_note_help.py            write the file
    tools/make_note_help.py --check    exit with 1 if it is out of date

Only groups whose codes can be part of a recording, of a report or of a comparison: the page is one file that people send.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference" / "diagnostics.md"
MODULE = ROOT / "web" / "src" / "note_texts.js"
NOT_ON_PAGE = {
    "Benchmarks of serving",
    "Commands and the kernel library",
    "Running experiments",
    "Analyzing experiments",
    "Importing experiments",
    "Prediction",
    "Calibration",
}
HEADER = """// SPDX-License-Identifier: Apache-2.0
// Generated from docs/reference/diagnostics.md by tools/make_note_help.py: edit that page and run the command.
"""
COLUMNS = 110  # of the text in a line


def plain(markdown: str) -> str:
    """The text of a paragraph without marks of code and without line breaks."""
    return " ".join(markdown.replace("`", "").split())


def explanations_by_code(reference: str) -> dict[str, str]:
    """Explanations by code."""
    texts: dict[str, str] = {}
    groups = re.split(r"^## (.+)\n", reference, flags=re.MULTILINE)
    unknown = NOT_ON_PAGE - set(groups[1::2])
    if unknown:
        raise SystemExit(f"make_note_help: {REFERENCE.name} has no group {', '.join(sorted(unknown))}")
    for title, group in zip(groups[1::2], groups[2::2]):
        entries = re.split(r"^### (\S+)\n", group, flags=re.MULTILINE)
        if title not in NOT_ON_PAGE:
            texts.update({code: plain(text) for code, text in zip(entries[1::2], entries[2::2])})
    return texts


def module_of(texts: dict[str, str]) -> str:
    lines = []
    for code, text in texts.items():
        parts = textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
        pieces = [json.dumps(part if part is parts[-1] else part + " ", ensure_ascii=False) for part in parts]
        lines.append(f"  {json.dumps(code)}:\n    " + " +\n    ".join(pieces) + ",\n")
    return f"{HEADER}export const NOTE_TEXTS = {{\n{''.join(lines)}}};\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is out of date")
    arguments = parser.parse_args()
    made = module_of(explanations_by_code(REFERENCE.read_text(encoding="utf-8")))
    if not arguments.check:
        MODULE.write_text(made, encoding="utf-8")
        return 0
    if MODULE.exists() and MODULE.read_text(encoding="utf-8") == made:
        return 0
    print(f"make_note_help: {MODULE.relative_to(ROOT)} is out of date: run tools/make_note_help.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
