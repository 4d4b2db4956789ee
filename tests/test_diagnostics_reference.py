# SPDX-License-Identifier: Apache-2.0
"""docs/reference/diagnostics.md describes every diagnostic code that the program emits, and no other.

How codes are found. Comments are removed, and test sources are left out. In C++:

- The first element of a braced Diagnostic: {code, count, message, remedy} after add(, add_diagnostic( or Diagnostic, and
  any other braced list of four that begins with a code and has a sentence as its third element, such as `return {...}`.
- The first element of an AnalysisFlag, and of what is added to a list of flags: flags.push_back({code, message, remedy}).
- The argument of every function and lambda that returns nothing and has a text parameter named `code`: a new helper is
  found by its declaration.
- Literals that a variable or member named `code` is initialized with.

In Python: the first argument of calls of diagnose().

A code that is not a literal there is an error unless COMPUTED names the expression and where its codes come from. So a
new diagnostic is found, or this test fails because it does not understand how its code is computed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DIAGNOSTICS_PAGE = ROOT / "docs" / "reference" / "diagnostics.md"
HELP_TOOL = ROOT / "tools" / "make_note_help.py"
MAX_ENTRY_WORDS = 60  # of an entry

TOKEN_PATTERN = re.compile(r'R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
CODE_PATTERN = re.compile(r'"([a-z][a-z0-9]*(?:[._-][a-z0-9]+)*)"')
SENTENCE_PATTERN = re.compile(r'"[^"]* [^"]*"|\bmessage\b')
DIAGNOSTIC_PATTERN = re.compile(r"(?:\badd|\badd_diagnostic)\(\s*\{|(?<!struct )\bDiagnostic\b\s*\w*\s*=?\s*\{")
TEXT_LIST_PATTERN = re.compile(r'\{\s*"')
FLAG_PATTERN = re.compile(
    r"\b\w*[fF]lags\w*(?:\.|->)(?:push_back\(\s*\{|emplace_back\()|(?<!struct )\bAnalysisFlag\b\s*\w*\s*=?\s*\{"
)
HELPER_PATTERN = re.compile(r"\bvoid\s+(?:\w+::)*(\w+)\(|\bauto (\w+) = \[[^\]]*\]\s*\(")
CODE_PARAMETER_PATTERN = re.compile(r"\b(?:string_view|string|char)\b[&* ]*\bcode\b")
CODE_VARIABLE_PATTERN = re.compile(r"\bstring(?:_view)? code = ([^;]+);|\.code = ([^;,}]+)")


def find_constant(name: str, text: str) -> str:
    """The value of a constant array or text."""
    constant_match = re.search(rf"\b{name}(?:\[\])? =\s+(\{{.*?\}}|\".*?\");", text, re.DOTALL)
    assert constant_match, name
    return constant_match[1]


def check_codes(text: str) -> list[str]:
    names = find_constant("kKnownCheckNames", cc_sources()["src/experiment/plan/experiment_spec.h"])
    return [f"check_{name}" for name in names.strip('"').split()]


# Expressions of codes that are not literals: the codes that they can be, from the text of the file.
COMPUTED_CODES = {
    "std::string(fault.diagnostic_code)": lambda text: CODE_PATTERN.findall(find_constant("kReadFaults", text)),
    "std::string(kind.code)": lambda text: CODE_PATTERN.findall(find_constant("kKinds", text)),
    '"check_" + check.check_name': check_codes,
}
COPIED_CODE_PATTERN = re.compile(r'\w+\.(?:code|text_or_empty\("code"\))')  # of another diagnostic: no code of its own
PASSED_CODE_PATTERN = re.compile(
    r"(?:std::string|std::move|text|_encode_text)?\(?code\)?"
)  # the parameter or variable `code` itself


@cache
def cc_sources() -> dict[str, str]:
    """Texts without comments, by path."""
    paths = [path for folder in ("src", "python") for path in sorted((ROOT / folder).rglob("*.[ch]*"))]
    return {
        str(path.relative_to(ROOT)): TOKEN_PATTERN.sub(
            lambda match: " " if match[0].startswith("/") else match[0], path.read_text()
        )
        for path in paths
        if path.suffix in (".cc", ".h") and not path.name.endswith("_test.cc")
    }


def split_elements(text: str, opening: int) -> list[str]:
    """The elements of the list or of the arguments whose bracket is at `opening`."""
    found, depth, begin, at = [], 0, opening + 1, opening
    while at < len(text):
        literal = TOKEN_PATTERN.match(text, at) if text[at] in "\"'R" else None
        if literal:
            at = literal.end()
            continue
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if depth == 0 or (depth == 1 and text[at] == ","):
            found.append(" ".join(text[begin:at].split()))
            begin = at + 1
        if depth == 0:
            break
        at += 1
    return found


def codes_of(expression: str, name: str, text: str) -> list[str]:
    if expression in COMPUTED_CODES:
        return COMPUTED_CODES[expression](text)
    if COPIED_CODE_PATTERN.fullmatch(expression):
        return []
    codes = CODE_PATTERN.findall(expression)
    assert codes or PASSED_CODE_PATTERN.fullmatch(expression), (
        f"{name}: how is the code computed? Extend COMPUTED: {expression}"
    )
    return codes


def codes_of_objects(name: str, text: str) -> Iterator[str]:
    for match in DIAGNOSTIC_PATTERN.finditer(text):
        parts = split_elements(text, match.end() - 1)
        if len(parts) == 4 and not parts[0].startswith("."):  # else a sample, an event or other data
            yield from codes_of(parts[0], name, text)
    for match in TEXT_LIST_PATTERN.finditer(text):
        parts = split_elements(text, match.start())
        if len(parts) != 4 or parts[1].startswith('"'):  # a count is no text
            continue
        if CODE_PATTERN.fullmatch(parts[0]) and SENTENCE_PATTERN.search(parts[2]):
            yield from CODE_PATTERN.findall(parts[0])
    for match in FLAG_PATTERN.finditer(text):
        yield from codes_of(split_elements(text, match.end() - 1)[0], name, text)
    for match in CODE_VARIABLE_PATTERN.finditer(text):
        yield from CODE_PATTERN.findall(match[1] or match[2])


def find_helpers() -> Iterator[tuple[str, int]]:
    """Functions that take a code, and the index of that parameter."""
    for text in cc_sources().values():
        for match in HELPER_PATTERN.finditer(text):
            for index, parameter in enumerate(split_elements(text, match.end() - 1)):
                if CODE_PARAMETER_PATTERN.search(parameter):
                    yield match[1] or match[2], index


def codes_of_calls(text: str, function: str, index: int) -> Iterator[str]:
    for match in re.finditer(rf"\b{function}\(", text):
        arguments = split_elements(text, match.end() - 1)
        if index < len(arguments) and CODE_PATTERN.fullmatch(arguments[index]):
            yield from CODE_PATTERN.findall(arguments[index])


def codes_of_python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in ("diagnose", "jmc_diagnose"):
            continue
        code = node.args[0]
        where = f"{path.relative_to(ROOT)}:{node.lineno}"
        if isinstance(code, ast.Constant):
            yield code.value
        else:
            assert PASSED_CODE_PATTERN.fullmatch(ast.unparse(code)), (
                f"{where}: how is the code computed? {ast.unparse(code)}"
            )


@cache
def collect_emitted_codes() -> dict[str, str]:
    """A file that emits it, by code."""
    found: dict[str, str] = {}
    known_helpers = set(find_helpers())
    for name, text in cc_sources().items():
        for code in codes_of_objects(name, text):
            found.setdefault(code, name)
        for function, index in known_helpers:
            for code in codes_of_calls(text, function, index):
                found.setdefault(code, name)
    for path in sorted((ROOT / "python" / "joulemap").rglob("*.py")):
        for code in codes_of_python(path):
            found.setdefault(code, str(path.relative_to(ROOT)))
    return found


@cache
def read_page_entries() -> list[tuple[str, str]]:
    """Codes and descriptions of the page."""
    parts = re.split(r"^### (\S+)\n", DIAGNOSTICS_PAGE.read_text(), flags=re.MULTILINE)
    return [(code, text.split("\n## ")[0].strip()) for code, text in zip(parts[1::2], parts[2::2])]


def test_the_scan_finds_every_way_in_which_a_code_is_emitted():
    found = collect_emitted_codes()
    assert len(found) > 200
    examples = {
        "kernels_by_time": "an element of a list",
        "recording_part_skipped": "a returned object",
        "file_cut": "an object in an optional",
        "gpu_denied": "an alternative",
        "recording_cut": "a variable",
        "kernels_dropped": "an argument of a function",
        "events_cut": "an argument of a lambda",
        "cupti_flush": "an argument of a member",
        "torn_reading": "a row of a table",
        "check_swap": "a sum of texts",
        "large_spread": "a flag",
        "failed": "a flag of a row",
        "capture_failed": "an argument in Python",
    }
    assert {code: how for code, how in examples.items() if code not in found} == {}


def test_every_emitted_code_is_described():
    described = {code for code, text in read_page_entries()}
    missing = {code: where for code, where in collect_emitted_codes().items() if code not in described}
    assert missing == {}, f"describe them in {DIAGNOSTICS_PAGE.relative_to(ROOT)}, then run tools/make_note_help.py"


def test_no_code_is_described_twice():
    codes = [code for code, text in read_page_entries()]
    assert sorted(codes) == sorted(set(codes))


def test_nothing_is_described_that_is_not_emitted():
    assert [code for code, text in read_page_entries() if code not in collect_emitted_codes()] == []


def test_every_code_that_strict_counts_as_data_loss_is_emitted():
    codes = CODE_PATTERN.findall(find_constant("kDataLossCodes", cc_sources()["src/model/data_loss.cc"]))
    assert len(codes) > 30 and set(codes) <= set(collect_emitted_codes())


@pytest.mark.parametrize(("code", "text"), read_page_entries(), ids=[code for code, text in read_page_entries()])
def test_a_description_is_short_and_complete(code, text):
    assert len(text.split()) <= MAX_ENTRY_WORDS
    assert text.endswith("."), text
    assert text.count("To do:") <= 1


def test_the_texts_of_the_page_are_those_of_the_reference():
    checked = subprocess.run([sys.executable, HELP_TOOL, "--check"], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
