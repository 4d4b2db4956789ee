#!/usr/bin/env python3
"""Finds home-made words where the field has a term (docs/reference/glossary.md): in comments, identifiers and texts of
C++, Python and JavaScript, and in the documents.

    tools/check_words.py [FILE...]     all sources and documents where none is named

Prints FILE:LINE, the word and what to write instead. Exits 1 when it finds one.
"""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED_FILE_PATTERNS = ["src/*.cc", "src/*.h", "python/joulemap/*.py", "tools/*.py", "bench/*.py", "tests/*.py"]
CHECKED_FILE_PATTERNS += [
    "web/*.js",
    "web/*.mjs",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
]
CHECKED_FILE_PATTERNS += ["CODE_OF_CONDUCT.md", "docs/*.md"]  # in patterns of git "*" matches "/", too
FILES_LISTING_WORDS = {"tools/check_words.py", "docs/reference/glossary.md"}  # they list the words
REPLACEMENT_BY_WORD_PATTERN = {
    r"\b(un)?told\b|\btells?\b": "reports, shows, contains, returns",
    r"\bmiddles?\b(?! of)": "median",
    r"\bbelie(f|fs|ved|ves?)\b": "prior",
    r"\bshared? out\b": "attributed, split",
    r"\balike\b": "similar",
    r"\btogetherness\b": "autocorrelation",
    r"\bdoubts\b": "uncertainty",
    r"\bslowness\b|\bpaces?\b": "slowdown",
    r"\bstands? for\b|\bstood for\b": "extrapolates to, represents",
    r"\b(listened|listens|heard|hears)\b|\bfollowed steps?\b|\bsteps? followed\b": "traced, received",
    r"\berrands?\b": "callbacks",
    r"\brenew(s|ed|ing|als?)?\b": "update",
    r"\blooks? at (it|them) (once|twice)\b|\b(a|one|second|first|third) look\b": "pass",
    r"\bnobody('s)?\b": "unattributed, no one",
    r"\bsqueezed\b": "normalized",
    r"\bhow[ -]man(y-|i)eth\b|\bso many\b": "index, count",
    r"\bof it all\b|\bof before\b|\bto be had\b": "(rewrite the sentence)",
    r"\bdrew\b": "used, power of a kernel class",
    r"\bmemory of (a|the|its) (sensor|gauge|channel|counter)s?\b": "time constant",
    r"\bothers'": "of other processes, of co-tenants",
    r"\bclose stretch(es)?\b": "burst sampling",
    r"\bquiet windows?\b": "idle-host windows",
    r"\bsteps? of (a|an|the|its) (\w+ )?counters?\b": "counter update",
    r"(?<!hugging )\bfaces?\b": "wrapper, adapter",
    r"\bkept files?\b": "atomic file replacement",
}
COMPILED_WORD_PATTERNS = [
    (re.compile(pattern, re.IGNORECASE), write) for pattern, write in REPLACEMENT_BY_WORD_PATTERN.items()
]
CC_FOREIGN_NAMES = {"Tell", "middle"}  # of RapidJSON; the SVG term of Anchor::middle
PYTHON_FOREIGN_NAMES = {"quiet_windows", "tell"}  # a column of collected data; Study.tell of Optuna
CC_LITERAL_PATTERN = re.compile(r'R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
JS_TOKEN_PATTERN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|(?P<name>[A-Za-z_$]\w*)""",
    re.DOTALL,
)
# Code of documents, and targets of links. Inline code ends at the latest with its paragraph.
DOCUMENT_CODE_PATTERN = re.compile(r"^```.*?^```|`(?:[^`\n]|\n(?!\n))*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
IDENTIFIER_PATTERN = re.compile(r"[A-Za-z_]\w+")
KEY_LITERAL_PATTERN = re.compile(r'["\'][a-z0-9_]+["\']')  # keys of files and diagnostic codes never change
CODE_NAME_PATTERN = re.compile(r"`[^`]*`|\w*_\w+|\w+::\w+")  # identifiers are renamed in the code, not here
KEY_NAME_PATTERN = re.compile(r"\w*_\w+")  # such a key within a text of Python or JavaScript
TextPiece = tuple[int, str, str]  # line, words, where they are


def blank_out_match(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def split_words(name: str) -> str:
    """ "is_told" and "IsTold" as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")


def split_lines(first_line_number: int, text: str, piece_kind: str) -> Iterator[TextPiece]:
    for number, line in enumerate(text.splitlines(), first_line_number):
        yield number, line, piece_kind


def read_comment(first_line_number: int, text: str) -> Iterator[TextPiece]:
    yield from split_lines(first_line_number, CODE_NAME_PATTERN.sub(blank_out_match, text), "a comment")


def read_identifier(number: int, name: str) -> Iterator[TextPiece]:
    yield number, split_words(name), name


def read_literal(first_line_number: int, text: str) -> Iterator[TextPiece]:
    if not KEY_LITERAL_PATTERN.fullmatch(text) and "text-anchor" not in text:
        yield from split_lines(first_line_number, text.replace("_", " "), "a text")


def read_cc_pieces(text: str) -> Iterator[TextPiece]:
    for number, line in enumerate(CC_LITERAL_PATTERN.sub(blank_out_match, text).splitlines(), 1):
        code, _, words = line.partition("//")
        yield from read_comment(number, words)
        for name in IDENTIFIER_PATTERN.findall(code):
            if name not in CC_FOREIGN_NAMES:
                yield from read_identifier(number, name)
    for match in CC_LITERAL_PATTERN.finditer(text):
        yield from read_literal(text.count("\n", 0, match.start()) + 1, match[0])


def read_python_pieces(text: str) -> Iterator[TextPiece]:
    previous_token_type = (
        tokenize.ENCODING
    )  # type of the token before, ignoring comments and line breaks inside of statements
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begins_statement = previous_token_type in (
            tokenize.ENCODING,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
        )
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins_statement):
            yield from read_comment(token.start[0], token.string)
        elif token.type == tokenize.NAME and token.string not in PYTHON_FOREIGN_NAMES:
            yield from read_identifier(token.start[0], token.string)
        elif tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            yield from read_literal(token.start[0], KEY_NAME_PATTERN.sub(blank_out_match, token.string))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            previous_token_type = token.type


def read_javascript_pieces(text: str) -> Iterator[TextPiece]:
    for match in JS_TOKEN_PATTERN.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        if match["comment"]:
            yield from read_comment(number, match[0])
        elif match["name"]:
            yield from read_identifier(number, match[0])
        else:
            yield from read_literal(number, KEY_NAME_PATTERN.sub(blank_out_match, match[0]))


def read_document_pieces(text: str) -> Iterator[TextPiece]:
    yield from split_lines(1, DOCUMENT_CODE_PATTERN.sub(blank_out_match, text), "a document")


PIECE_READER_BY_SUFFIX = {
    ".cc": read_cc_pieces,
    ".h": read_cc_pieces,
    ".py": read_python_pieces,
    ".js": read_javascript_pieces,
    ".mjs": read_javascript_pieces,
    ".md": read_document_pieces,
}


def is_test(name: str) -> bool:
    return name.endswith("_test.cc") or name.startswith("tests/") or bool(re.match(r"bench/.*/test_\w+\.py$", name))


@functools.cache  # most pieces are identifiers, which repeat
def find_forbidden_words(words: str) -> list[tuple[str, str]]:
    return [(word[0], write) for pattern, write in COMPILED_WORD_PATTERNS for word in pattern.finditer(words)]


def find_word_problems(path: Path) -> list[str]:
    """Comments and documents; identifiers and texts of all but tests, whose texts quote old recordings."""
    name = str(path.relative_to(ROOT))
    word_problems = []
    for number, words, piece_kind in PIECE_READER_BY_SUFFIX[path.suffix](path.read_text()):
        if is_test(name) and piece_kind != "a comment":
            continue
        for word, write in find_forbidden_words(words):
            word_problems.append(f"{name}:{number}: '{word}' in {piece_kind}: write {write}")
    return word_problems


def main() -> int:
    argument_paths = [Path(name).resolve() for name in sys.argv[1:]]
    command = ["git", "ls-files", *CHECKED_FILE_PATTERNS]
    tracked_names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    tracked_paths = [ROOT / name for name in tracked_names if name not in FILES_LISTING_WORDS]
    word_problems = [
        hit for path in argument_paths or tracked_paths if path.exists() for hit in find_word_problems(path)
    ]
    for hit in word_problems:
        print(f"check_words: {hit}", file=sys.stderr)
    print(f"check_words: {len(word_problems)} problems")
    return 1 if word_problems else 0


if __name__ == "__main__":
    sys.exit(main())
