# SPDX-License-Identifier: Apache-2.0
"""What a benchmark says: lines of Markdown, printed as they come, and the bars that were missed."""

from __future__ import annotations

from pathlib import Path


class Findings:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.missed: list[str] = []

    def say(self, text: str = "") -> None:
        self.lines.append(text)
        print(text, flush=True)

    def bar(self, name: str, good: bool) -> str:
        if not good:
            self.missed.append(name)
        return "yes" if good else "**no**"

    def conclude(self, markdown: Path | None) -> int:
        """Says what was missed, keeps it all in that file, and gives the exit code."""
        self.say(f"\nMissed: {', '.join(self.missed) or 'nothing'}")
        if markdown:
            markdown.write_text("\n".join(self.lines) + "\n")
        return 1 if self.missed else 0
