#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/evidence.md and the quoted figures of all pages from docs/evidence/*.toml.

    tools/make_evidence.py             write the pages
    tools/make_evidence.py --check     write nothing; exit with 1 if a page differs or quotes an unknown figure

A page quotes a figure as `<!-- e:FILE.ROW.COLUMN -->4.2 %<!-- / -->`: the column COLUMN of the row with the id ROW in
docs/evidence/FILE.toml. Quotes in code are left alone. Problems are printed as FILE:LINE: problem.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE_FOLDER = Path("docs/evidence")
EVIDENCE_PAGE = Path("docs/reference/evidence.md")

EVIDENCE_TOPICS = [
    "Energy of a command",
    "Sensors",
    "Attribution to kernels and layers",
    "Waiting and user programs",
    "Advice",
    "Cost of tracing",
    "Comparing runs and statistics",
    "Prediction",
    "Speed and size",
    "Studies",
]
KINDS = {"measured": "measured", "estimated": "estimated from CPU time", "simulated": "simulated",
         "recorded": "computed from stored recordings or data"}  # fmt: skip
TEXT_KEYS = ["question", "command", "hardware", "software", "commit", "n"]
REQUIRED_KEYS = ["topic", *TEXT_KEYS, "date", "kind", "notes", "columns", "row"]
FILE_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]*")
COMMIT_PATTERN = re.compile(r"[0-9a-f]{7,40}")

QUOTE_PATTERN = re.compile(r"<!-- e:(\S+) -->(.*?)<!-- / -->", re.DOTALL)
MARKER_PATTERN = re.compile(r"<!-- (?:e:\S*|/) -->")
CODE_PATTERN = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$|(?P<ticks>`+)[^\n]*?(?P=ticks)", re.MULTILINE | re.DOTALL)

PAGE_INTRODUCTION = """\
# Evidence

<!-- Generated from docs/evidence/*.toml by tools/make_evidence.py: edit those files and run the command. -->

Every figure that pages quote from here, with the command that measures it; a test fails when a quoted figure differs.
Studies have figures of their own.

- *Measured* figures come from the hardware that the entry names; notes say if parts of it are simulated. *Simulated*
  figures have a simulated GPU, machine or experiment whose truth is known. *Computed* figures are a later analysis of
  stored recordings or data.
- The commit is the measured one or, if unknown, the one that added the figure. Later versions may differ.
- RMS is the root mean square, RMSPE the root mean square percentage error. Errors without a sign are absolute.
- `make dist` builds the program `JOULEMAP` and the wheel `WHEEL`. `PEERS` is a folder with the other tools.
  All machines were virtual, shared with other users, and not reserved.
"""


class EvidenceError(Exception):
    """A fault of an evidence file."""


@dataclass(frozen=True)
class EvidenceFile:
    name: str
    values: dict

    @property
    def columns(self) -> dict[str, str]:
        return self.values["columns"]

    @property
    def rows(self) -> list[dict[str, str]]:
        return self.values["row"]


def line_number_at(text: str, text_offset: int) -> int:
    return text.count("\n", 0, text_offset) + 1


def check_rows(values: dict) -> None:
    row_ids = set()
    for row in values["row"]:
        name = row.get("id")
        if not isinstance(name, str) or not FILE_NAME_PATTERN.fullmatch(name):
            raise EvidenceError(f"a row has the id {name!r}; an id consists of a-z, 0-9 and _")
        if name in row_ids:
            raise EvidenceError(f"two rows have the id '{name}'")
        row_ids.add(name)
        for column, value in row.items():
            if column != "id" and column not in values["columns"]:
                raise EvidenceError(f"row '{name}' has '{column}', which is no column")
            if not isinstance(value, str) or not value or "\n" in value or "<!--" in value:
                raise EvidenceError(f"'{column}' of row '{name}' must be a text of one line")
    if not row_ids:
        raise EvidenceError("there are no rows")


def check_evidence_values(values: dict) -> None:
    for key in REQUIRED_KEYS:
        if key not in values:
            raise EvidenceError(f"the key '{key}' is missing")
    for key in values:
        if key not in REQUIRED_KEYS:
            raise EvidenceError(f"the key '{key}' is unknown")
    for key in TEXT_KEYS:
        if not isinstance(values[key], str) or not values[key]:
            raise EvidenceError(f"'{key}' must be a text")
    if values["topic"] not in EVIDENCE_TOPICS:
        raise EvidenceError(f"the topic is none of {', '.join(EVIDENCE_TOPICS)}")
    if values["kind"] not in KINDS:
        raise EvidenceError(f"the kind is none of {', '.join(KINDS)}")
    if type(values["date"]) is not datetime.date:
        raise EvidenceError("'date' must be a date such as 2026-11-18, without quotes")
    if not COMMIT_PATTERN.fullmatch(values["commit"]):
        raise EvidenceError("'commit' must be 7 to 40 hexadecimal digits")
    if not isinstance(values["notes"], list) or not all(isinstance(note, str) for note in values["notes"]):
        raise EvidenceError("'notes' must be a list of texts")
    columns = values["columns"]
    if not isinstance(columns, dict) or not all(isinstance(title, str) for title in columns.values()):
        raise EvidenceError("'columns' must be a table of titles")
    for column in columns:
        if column == "id" or not FILE_NAME_PATTERN.fullmatch(column):
            raise EvidenceError(f"'{column}' is no name of a column; a name consists of a-z, 0-9 and _")
    if not isinstance(values["row"], list) or not all(isinstance(row, dict) for row in values["row"]):
        raise EvidenceError("rows must be [[row]] tables")
    check_rows(values)


def read_evidence(path: Path) -> EvidenceFile:
    if not FILE_NAME_PATTERN.fullmatch(path.stem):
        raise EvidenceError("a file name consists of a-z, 0-9 and _")
    try:
        values = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise EvidenceError(str(error)) from error
    check_evidence_values(values)
    return EvidenceFile(path.stem, values)


def read_all_evidence(root: Path) -> tuple[list[EvidenceFile], list[str]]:
    """All evidence files by name, and the problems that were found."""
    evidence_files, problems = [], []
    for path in sorted((root / EVIDENCE_FOLDER).glob("*.toml")):
        try:
            evidence_files.append(read_evidence(path))
        except EvidenceError as problem:
            problems.append(f"{EVIDENCE_FOLDER / path.name}:1: {problem}")
    return evidence_files, problems


def collect_figures(evidence: list[EvidenceFile]) -> dict[str, str]:
    """Texts by FILE.ROW.COLUMN."""
    return {
        f"{evidence_file.name}.{row['id']}.{column}": value
        for evidence_file in evidence
        for row in evidence_file.rows
        for column, value in row.items()
        if column != "id"
    }


def escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


def make_section(each: EvidenceFile) -> Iterator[str]:
    values = each.values
    yield f"### {each.name}\n\n{values['question']}\n\n"
    yield f"- Command: `{values['command']}`\n"
    yield f"- {values['date'].isoformat()}, {KINDS[values['kind']]}; commit {values['commit']}; n: {values['n']}\n"
    yield f"- Hardware: {values['hardware']}. Software: {values['software']}.\n"
    for note in values["notes"]:
        yield f"- {note}\n"
    used_columns = [column for column in each.columns if any(column in row for row in each.rows)]
    yield "\n| " + " | ".join(escape_cell(each.columns[column]) for column in used_columns) + " |\n"
    yield "|" + "---|" * len(used_columns) + "\n"
    for row in each.rows:
        yield "| " + " | ".join(escape_cell(row.get(column, "")) for column in used_columns) + " |\n"
    yield f"\nSource: [{each.name}.toml](../evidence/{each.name}.toml)\n"


def make_evidence_page(evidence: list[EvidenceFile]) -> str:
    parts = [PAGE_INTRODUCTION]
    for topic in EVIDENCE_TOPICS:
        topic_evidence = [evidence_file for evidence_file in evidence if evidence_file.values["topic"] == topic]
        if topic_evidence:
            parts.append(f"## {topic}\n")
            parts += ["".join(make_section(evidence_file)) for evidence_file in topic_evidence]
    return "\n".join(parts)


def blank_out_code(text: str) -> str:
    """The text with the characters of code replaced by spaces, so that positions stay the same."""
    return CODE_PATTERN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def update_quotes(text: str, figures: dict[str, str]) -> tuple[str, list[tuple[int, str]]]:
    """The text with all quotes up to date, and differences as line and description."""
    visible, parts, end, problems = blank_out_code(text), [], 0, []
    for match in QUOTE_PATTERN.finditer(visible):
        name, quoted_value, line = match[1], text[match.start(2) : match.end(2)], line_number_at(text, match.start())
        value = figures.get(name)
        if value is None:
            problems.append((line, f"{name} is in no evidence file"))
        elif MARKER_PATTERN.search(quoted_value):
            problems.append((line, f"{name} is not closed by <!-- / -->"))
        elif quoted_value != value:
            problems.append((line, f"{name} is '{value}', the page has '{quoted_value}'"))
            parts += [text[end : match.start(2)], value]
            end = match.end(2)
    for match in MARKER_PATTERN.finditer(QUOTE_PATTERN.sub(lambda quote: re.sub(r"[^\n]", " ", quote[0]), visible)):
        problems.append((line_number_at(text, match.start()), f"{match[0]} has no counterpart"))
    return "".join(parts) + text[end:], sorted(problems)


def find_first_difference(old: str, new: str) -> int:
    """The line of the first difference."""
    lines = zip(old.split("\n"), new.split("\n"))
    equal_line_count = next((i for i, (a, b) in enumerate(lines) if a != b), min(old.count("\n"), new.count("\n")))
    return equal_line_count + 1


def list_pages(root: Path) -> list[Path]:
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in pages if page.is_file() and page != root / EVIDENCE_PAGE]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with README.md and docs/")
    options = parser.parse_args(arguments)
    evidence, problems = read_all_evidence(options.root)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    page, text = options.root / EVIDENCE_PAGE, make_evidence_page(evidence)
    existing_text = page.read_text() if page.is_file() else ""
    failures = []
    if existing_text != text:
        if options.check:
            failures.append(
                f"{EVIDENCE_PAGE}:{find_first_difference(existing_text, text)}: out of date; run tools/make_evidence.py"
            )
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    figures = collect_figures(evidence)
    for path in list_pages(options.root):
        existing_text = path.read_text()
        new, differences = update_quotes(existing_text, figures)
        if not options.check:
            if new != existing_text:
                path.write_text(new)
            differences = update_quotes(new, figures)[1]
        failures += [f"{path.relative_to(options.root)}:{line}: {difference}" for line, difference in differences]
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
