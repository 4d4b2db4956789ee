# SPDX-License-Identifier: Apache-2.0
"""What a benchmark says: lines of Markdown, printed as they come, and the bars that were missed."""

from __future__ import annotations


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
