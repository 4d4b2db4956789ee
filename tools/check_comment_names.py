#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds comments in C++ that mention a constant, function, member or header that does not exist (any more).

    tools/check_comment_names.py        exits 1 with a line for each

Looks at kConstants, functions() of joulemap's style, Class::members, `words` of code style and names of headers. Names of
other projects are listed below.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THIRD_PARTY_NAMES = {"global_max_num_events_", "cupti_version.h"}
MENTIONED_NAME_PATTERN = re.compile(r"\bk[A-Z]\w{3,}|\b[a-z_]{3,}(?=\(\))|\b[A-Z]\w+::\w+|`[a-z]\w{3,}`|\b[a-z_]+\.h\b")


def split_comment(line: str) -> tuple[str, str]:
    """Code and comment of a line."""
    comment_match = re.search(r"(?<!:)//(.*)", line)
    return (line[: comment_match.start()], comment_match.group(1)) if comment_match else (line, "")


def list_files(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path.is_file()]


def main() -> int:
    sources = list_files("src/**/*.h", "src/**/*.cc", "include/**/*.h")
    code_names: set[str] = set()
    comments = []
    for path in sources:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code, comment = split_comment(line)
            code_names.update(re.findall(r"\w+", code))
            if comment:
                comments.append((path, number, comment))
    for path in list_files(
        "python/**/*.py", "tools/**/*.py", "tools/*.sh", "fuzz/*.cc", "tests/**/*.cc", "tests/**/*.h"
    ):
        code_names.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    headers = {path.name for path in list_files("src/**/*.h", "include/**/*.h", "tests/**/*.h", "fuzz/*.h")}
    problems = 0
    for path, number, comment in comments:
        for mentioned in MENTIONED_NAME_PATTERN.findall(comment):
            name = mentioned.strip("`").split("::")[-1]
            if (
                name in THIRD_PARTY_NAMES
                or name.endswith("_")
                or (name in headers if name.endswith(".h") else name in code_names)
            ):
                continue
            problems += 1
            print(f"check_comment_names: {path.relative_to(ROOT)}:{number}: {mentioned} does not exist")
    print(f"check_comment_names: {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
