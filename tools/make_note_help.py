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
DIAGNOSTICS_PAGE = ROOT / "docs" / "reference" / "diagnostics.md"
NOTE_TEXTS_FILE = ROOT / "web" / "src" / "note_texts.js"
GROUPS_NOT_ON_PAGE = {
    "Benchmarks of serving",
    "Commands and the kernel library",
    "Running experiments",
    "Analyzing experiments",
    "Importing experiments",
    "Prediction",
    "Calibration",
}
NOTE_TEXTS_HEADER = """// SPDX-License-Identifier: Apache-2.0
// Generated from docs/reference/diagnostics.md by tools/make_note_help.py: edit that page and run the command.
"""
LINE_COLUMNS = 110  # of the text in a line


def to_plain_text(markdown: str) -> str:
    """The text of a paragraph without marks of code and without line breaks."""
    return " ".join(markdown.replace("`", "").split())


def parse_explanations(reference: str) -> dict[str, str]:
    """Explanations by code."""
    texts: dict[str, str] = {}
    groups = re.split(r"^## (.+)\n", reference, flags=re.MULTILINE)
    unknown = GROUPS_NOT_ON_PAGE - set(groups[1::2])
    if unknown:
        raise SystemExit(f"make_note_help: {DIAGNOSTICS_PAGE.name} has no group {', '.join(sorted(unknown))}")
    for title, group in zip(groups[1::2], groups[2::2]):
        entries = re.split(r"^### (\S+)\n", group, flags=re.MULTILINE)
        if title not in GROUPS_NOT_ON_PAGE:
            texts.update({code: to_plain_text(text) for code, text in zip(entries[1::2], entries[2::2])})
    return texts


def make_javascript_module(texts: dict[str, str]) -> str:
    lines = []
    for code, text in texts.items():
        parts = textwrap.wrap(text, LINE_COLUMNS, break_long_words=False, break_on_hyphens=False)
        string_literals = [json.dumps(part if part is parts[-1] else part + " ", ensure_ascii=False) for part in parts]
        lines.append(f"  {json.dumps(code)}:\n    " + " +\n    ".join(string_literals) + ",\n")
    return f"{NOTE_TEXTS_HEADER}export const NOTE_TEXTS = {{\n{''.join(lines)}}};\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is out of date")
    arguments = parser.parse_args()
    module_text = make_javascript_module(parse_explanations(DIAGNOSTICS_PAGE.read_text(encoding="utf-8")))
    if not arguments.check:
        NOTE_TEXTS_FILE.write_text(module_text, encoding="utf-8")
        return 0
    if NOTE_TEXTS_FILE.exists() and NOTE_TEXTS_FILE.read_text(encoding="utf-8") == module_text:
        return 0
    print(
        f"make_note_help: {NOTE_TEXTS_FILE.relative_to(ROOT)} is out of date: run tools/make_note_help.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
