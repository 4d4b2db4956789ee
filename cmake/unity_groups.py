#!/usr/bin/env python3
"""Groups the sources of a target into translation units for a unity build.

    unity_groups.py LINES FILE...

Prints one line per file: its group and its path. Files that define the same name in an anonymous namespace never share a
group, so names stay local to their file, as they are without a unity build. A group holds about LINES lines. A file
that holds the comment `unity: alone` gets a group of its own.

JoulemapModule.cmake runs it whenever CMake configures. A name that is added later and clashes with one of the same group
fails to compile as a redefinition; `make build` configures first, so it regroups.
"""

import re
import sys

COMMENT_OR_LITERAL_PATTERN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
TYPE_PATTERN = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)(?=[^(){};]*$)")
FUNCTION_PATTERN = re.compile(r"\b(\w+)\s*\(")
VARIABLE_PATTERN = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")
ALIAS_PATTERN = re.compile(r"\busing\s+(\w+)\s*=")


def declared_name(head):
    """The name that the text before a `{` or `;` declares, or None. Using-declarations may occur repeatedly."""
    if re.match(r"(?:using\s+[\w:]+|namespace\s+\w+\s*=.*)$", head, re.DOTALL):
        return None
    for pattern in (TYPE_PATTERN, ALIAS_PATTERN):
        found = pattern.search(head)
        if found:
            return found.group(1)
    text_before_initializer = head.split("=", 1)[0] + ("=" if "=" in head else "")
    for pattern in (FUNCTION_PATTERN, VARIABLE_PATTERN):
        found = pattern.search(text_before_initializer)
        if found and not found.group(1)[0].isdigit():  # digits: the rest of an initializer, as in size_t{1} << 20
            return found.group(1)
    return None


def anonymous_namespace_names(source):
    """Names that a source defines directly in an anonymous namespace."""
    text = COMMENT_OR_LITERAL_PATTERN.sub(" ", source)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", text, flags=re.MULTILINE)
    names, scopes, head = set(), [], ""
    for character in text:
        if character not in "{};":
            head += character
            continue
        if character == "}":
            if scopes:
                scopes.pop()
        else:
            opens_anonymous_namespace = bool(re.search(r"\bnamespace\s*$", head))
            if scopes and scopes[-1] == "anonymous" and not opens_anonymous_namespace:
                names.add(declared_name(head.strip()))
            if character == "{":
                scopes.append("anonymous" if opens_anonymous_namespace else "other")
        head = ""
    return names - {None, "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "static_assert", "INSTANTIATE_TEST_SUITE_P"}


def grouped(sources, lines):
    """Greedy: each source joins the first group that has room and none of its names. Returns a group index per source."""
    groups, placed = [], []
    for source in sources:
        names, length, alone = anonymous_namespace_names(source), source.count("\n"), "unity: alone" in source
        for index, group in enumerate(groups):
            if not alone and not group["alone"] and group["lines"] + length <= lines and not names & group["names"]:
                break
        else:
            index = len(groups)
            groups.append({"names": set(), "lines": 0, "alone": alone})
        groups[index]["names"] |= names
        groups[index]["lines"] += length
        placed.append(index)
    return placed


def main():
    lines, paths = int(sys.argv[1]), sys.argv[2:]
    sources = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            sources.append(file.read())
    for path, index in zip(paths, grouped(sources, lines)):
        print(f"{index} {path}")


if __name__ == "__main__":
    main()
