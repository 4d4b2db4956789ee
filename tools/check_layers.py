#!/usr/bin/env python3
"""Checks every #include under src/ against the folder table of ARCHITECTURE.md, so that the page cannot go stale.

The table names each folder of src/ and the folders it may use besides itself, base and model. The CMake links must
match. Only one folder, its adapter, may include a third-party library. Exits 1 and lists violations.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED_LAYERS = {"base", "model"}
TABLE_ROW_PATTERN = re.compile(r"^\|\s*`src/([\w/]+)`\s*\|(?P<holds>.*)\|(?P<uses>[^|]*)\|\s*$")
# Third-party headers and the one folder that may include them; every folder may use fmt.
FOLDER_BY_THIRD_PARTY_HEADER = {"CLI/": "cli", "boost/": "statistics", "Eigen/": "statistics", "xgboost/": "predict"}
FOLDER_BY_THIRD_PARTY_HEADER |= dict.fromkeys(
    ["rapidjson/", "protozero/", "toml++/", "zstd.h", "zlib.h", "sqlite3.h", "sha2.h"], "formats"
)
INCLUDE_PATTERN = re.compile(r'^\s*#include\s+"([^"/]+)/')
LIBRARY_PATTERN = re.compile(r"joulemap_(\w+)")


def read_allowed_folders() -> dict[str, set[str]]:
    """Folder -> folders it may use, from the table of ARCHITECTURE.md."""
    table: dict[str, set[str]] = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if row := TABLE_ROW_PATTERN.match(line):
            allowed_folders = set(re.findall(r"\w+", row["uses"]))
            table[row[1]] = allowed_folders
    for folder, allowed_folders in table.items():
        if "all" in allowed_folders:
            allowed_folders |= set(table)
        # base uses no other folder; model uses only base.
        allowed_folders |= {"base"} if folder == "model" else set() if folder == "base" else SHARED_LAYERS
        allowed_folders.add(folder)
    return table


def check_folders(table: dict[str, set[str]]) -> list[str]:
    source_folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    problems = [f"src/{name} is not in the table of ARCHITECTURE.md" for name in sorted(source_folders - set(table))]
    return problems + [
        f"ARCHITECTURE.md names src/{name}, which does not exist" for name in sorted(set(table) - source_folders)
    ]


def check_includes(table: dict[str, set[str]]) -> list[str]:
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        folder = path.relative_to(ROOT / "src").parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for prefix, adapter in FOLDER_BY_THIRD_PARTY_HEADER.items():
                if line.startswith(f"#include <{prefix}") and folder != adapter:
                    problems.append(f"{path.relative_to(ROOT)}:{number}: only {adapter} may include <{prefix}...>")
            include = INCLUDE_PATTERN.match(line)
            if not include or include[1] not in table:
                continue
            if include[1] not in table.get(folder, set()):
                source_path = path.relative_to(ROOT)
                problems.append(
                    f"{source_path}:{number}: {folder} may not include {include[1]}/ (table in ARCHITECTURE.md)"
                )
    return problems


def check_linked_libraries(table: dict[str, set[str]]) -> list[str]:
    problems = []
    for folder, allowed_folders in table.items():
        text = (ROOT / "src" / folder / "CMakeLists.txt").read_text()
        _, _, links = text.partition("LINKS")
        for name in LIBRARY_PATTERN.findall(links.partition(")")[0]):
            if name in table and name not in allowed_folders:
                problems.append(f"src/{folder}/CMakeLists.txt links joulemap_{name}, which the table does not allow")
    return problems


def main() -> int:
    table = read_allowed_folders()
    if not table:
        print("check_layers: no folder table found in ARCHITECTURE.md", file=sys.stderr)
        return 1
    problems = check_folders(table)
    problems += check_includes(table)
    if not problems:
        problems += check_linked_libraries(table)
    for problem in problems:
        print(f"check_layers: {problem}", file=sys.stderr)
    print(f"check_layers: {len(table)} folders, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
