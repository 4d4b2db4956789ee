# SPDX-License-Identifier: Apache-2.0
"""Collects the output of a benchmark: lines of Markdown, printed immediately, and the bars that were missed."""

from __future__ import annotations

import re
from pathlib import Path

# Markers around the results of the last run in a page; the rest of the page is written by hand.
RESULTS_BEGIN, RESULTS_END = "<!-- results: begin -->", "<!-- results: end -->"


class Findings:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.missed: list[str] = []

    def add_line(self, text: str = "") -> None:
        self.lines.append(text)
        print(text, flush=True)

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        lines = [head, ["---"] * len(head), *rows]
        self.add_line("\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")

    def bar(self, name: str, is_met: bool) -> str:
        if not is_met:
            self.missed.append(name)
        return "yes" if is_met else "**no**"

    def conclude(self, markdown: Path | None) -> int:
        """Prints the missed bars, writes all lines to the file, and returns the exit code."""
        self.add_line(f"\nMissed: {', '.join(self.missed) or 'nothing'}")
        if markdown:
            self.keep(markdown)
        return 1 if self.missed else 0

    def keep(self, markdown: Path) -> None:
        """Replaces the section between the markers of a page that has them, else the whole file."""
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines).strip()) + "\n"
        page = markdown.read_text() if markdown.exists() else ""
        if RESULTS_BEGIN in page and RESULTS_END in page:
            leading_text, trailing_text = page.split(RESULTS_BEGIN, 1)[0], page.split(RESULTS_END, 1)[1]
            text = f"{leading_text}{RESULTS_BEGIN}\n\n{text}\n{RESULTS_END}{trailing_text}"
        markdown.write_text(text)
