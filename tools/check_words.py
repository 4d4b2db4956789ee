#!/usr/bin/env python3
"""Finds words that docs/reference/glossary.md replaces by the field's terms: in comments, identifiers and texts of C++.

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
IDENTIFIER = re.compile(r"[A-Za-z_]\w+")
FOREIGN = {"Tell", "middle"}  # of RapidJSON; the SVG term of Anchor::middle
KEY = re.compile(r'"[a-z0-9_]+"')  # keys of files and diagnostic codes never change
CODE_NAME = re.compile(r"`[^`]*`|\w*_\w+|\w+::\w+")  # identifiers are renamed in the code, not here


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def words_of(identifier: str) -> str:
    """"is_told" and "IsTold" as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", identifier).replace("_", " ")


def hits(path: Path) -> list[str]:
    """Comments of all files; identifiers and texts of all but tests, whose texts quote old recordings."""
    found = []
    text = path.read_text()

    def look(number: int, words: str, what: str) -> None:
        for pattern, write in PATTERNS:
            for word in pattern.finditer(words):
                found.append(f"{path.relative_to(ROOT)}:{number}: '{word[0]}' in {what}: write {write}")

    for number, line in enumerate(LITERAL.sub(blank, text).splitlines(), 1):
        code, _, comment = line.partition("//")
        look(number, CODE_NAME.sub(" ", comment), "a comment")
        if path.name.endswith("_test.cc"):
            continue
        for identifier in IDENTIFIER.findall(code):
            if identifier not in FOREIGN:
                look(number, words_of(identifier), identifier)
    if not path.name.endswith("_test.cc"):
        for literal in LITERAL.finditer(text):
            if not KEY.fullmatch(literal[0]) and "text-anchor" not in literal[0]:
                look(text.count("\n", 0, literal.start()) + 1, literal[0].replace("_", " "), "a text")
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
