#!/usr/bin/env python3
"""Finds words in comments that docs/reference/glossary.md replaces by the field's terms.

    tools/check_words.py [FILE...]     all C++ sources below src/ where none is named

Prints FILE:LINE, the word and what to write instead. Exits 1 when it finds one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = {
    r"\b(un)?told\b|\btells?\b": "reports, shows, contains, returns",
    r"\bmiddles?\b(?! of)": "median",
    r"\bbelie(f|fs|ved|ves?)\b": "prior",
    r"\bshared? out\b": "attributed, split",
    r"\balike\b": "similar",
    r"\btogetherness\b": "autocorrelation",
    r"\bdoubts\b": "uncertainty",
    r"\bslowness\b": "slowdown",
    r"\bstands? for\b|\bstood for\b": "extrapolates to, represents",
    r"\b(listened|listens|heard|hears)\b": "traced, received",
    r"\berrands?\b": "callbacks",
    r"\brenewed\b|\brenews\b": "updated",
    r"\blooks? at (it|them) (once|twice)\b|\b(second|first|third) look\b": "pass",
    r"\bnobody('s)?\b": "unattributed, no one",
    r"\bsqueezed\b": "normalized",
    r"\bhow many-eth\b|\bso many\b": "index, count",
    r"\bof it all\b|\bof before\b|\bto be had\b": "(rewrite the sentence)",
}
PATTERNS = [(re.compile(pattern, re.IGNORECASE), write) for pattern, write in WORDS.items()]
LITERAL = re.compile(r'R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
COMMENT = re.compile(r"//(.*)")
CODE_NAME = re.compile(r"`[^`]*`|\w*_\w+|\w+::\w+")  # identifiers are renamed in the code, not here


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def hits(path: Path) -> list[str]:
    found = []
    for number, line in enumerate(LITERAL.sub(blank, path.read_text()).splitlines(), 1):
        comment = COMMENT.search(line)
        if not comment:
            continue
        text = CODE_NAME.sub(" ", comment[1])
        for pattern, write in PATTERNS:
            for word in pattern.finditer(text):
                found.append(f"{path.relative_to(ROOT)}:{number}: '{word[0]}': write {write}")
    return found


def main() -> int:
    named = [Path(name).resolve() for name in sys.argv[1:]]
    command = ["git", "ls-files", "src/*.cc", "src/*.h"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [hit for path in named or [ROOT / name for name in listed] if path.exists() for hit in hits(path)]
    for hit in found:
        print(f"check_words: {hit}", file=sys.stderr)
    print(f"check_words: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
