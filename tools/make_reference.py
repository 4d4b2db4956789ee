#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/cli.md from the help of the program and docs/reference/python.md from the docstrings.

tools/make_reference.py [--program FILE]            write the pages
tools/make_reference.py [--program FILE] --check    exit with 1 if a page is out of date
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import re
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_FOLDER = ROOT / "docs" / "reference"
PACKAGE_FOLDER = ROOT / "python" / "joulemap"
PROGRAM_PATH = ROOT / "build" / "bin" / "joulemap"
HELP_COLUMNS = 110

# ---------------------------------------------------------------------------------------------------------------------
# Command line: the help texts of all verbs.

CLI_INTRODUCTION = """# Command line

All verbs and options of the program. `tools/make_reference.py` writes this page from `joulemap help VERB`.

| verb | purpose |
|---|---|
{verbs}

`joulemap FILE.joule` is short for `joulemap report FILE.joule`.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or `diff --fail-over` found an increase beyond the limit |
| 2 | wrong usage |
| 3 | data were lost or damaged, with `--strict` ([diagnostics](diagnostics.md)) |
| 77 | not possible on this machine; the message contains the remedy |

`stat` and `record` exit with the code of the command: 127 if it was not found, 126 if it is not executable, 128 + N if
signal N killed it. They use 1, 2 and 77 only if they did not start the command; with `--strict`, 3 replaces 0. They start
the command even if no sensor is readable.

## Output

`stat` and `record` print their text to stderr, because stdout belongs to the command. `--json` prints one line to stdout
([JSON](json.md)); `-o FILE` writes the result to a file. Progress appears only on a terminal.

## Common options

All verbs accept these options before or after the verb, except `--replay`. A [configuration file](configuration.md) can set
defaults.

{common}
"""

DESCRIPTION_COLUMN = 30  # where descriptions of options begin, on the line of the option or on the next one
RANGE_PATTERN = re.compile(r"^(?:INT in )?\[?(-?[\d.e+-]+) (?:-|to) ([\d.e+-]+)\]?$")
VALUE_TYPES = ("TEXT", "UINT", "INT", "FLOAT")


@dataclass
class HelpEntry:
    """A line of a help text: an option, an argument or a verb."""

    names: str
    text: str


@dataclass
class HelpText:
    summary: str
    usages: list[str]
    sections: dict[str, list[HelpEntry]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def read_help_text(program: Path, *verb: str) -> str:
    environment = {**os.environ, "JOULEMAP_CONFIG": "none", "COLUMNS": str(HELP_COLUMNS)}
    environment |= {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    process = subprocess.run([program, "help", *verb], capture_output=True, text=True, env=environment, timeout=60)
    if process.returncode != 0:
        raise SystemExit(f"make_reference: joulemap help {' '.join(verb)}: {process.stderr.strip()}")
    return process.stdout


def parse_help(text: str) -> HelpText:
    """The parts of a help text: its first line, usage, sections of entries, and what follows them."""
    lines = text.splitlines()
    help_text, section = HelpText(lines[0], []), None
    for line, next_line in zip(lines[1:], [*lines[2:], ""]):
        if match := re.match(r"^(?:Usage(?: with a command)?:|   or:) (.*)$", line):
            help_text.usages.append(match[1])
            section = None
        elif re.match(r"^(Positionals|Options|Common options|Subcommands):$", line):
            section = help_text.sections.setdefault(line[:-1], [])
        elif section is not None and line.startswith(" " * DESCRIPTION_COLUMN):
            section[-1].text = f"{section[-1].text} {line.strip()}".strip()
        elif section is not None and re.match(r"^  \S", line):
            column = len(line) if next_line.startswith(" " * DESCRIPTION_COLUMN) else DESCRIPTION_COLUMN
            section.append(HelpEntry(line[:column].strip(), line[column:]))
        elif line.strip():
            section = None
            help_text.remarks.append(line)
    if len(help_text.usages) > 1:  # the general form is less precise than those of the remarks
        del help_text.usages[0]
    return help_text


def make_option_cells(entry: HelpEntry) -> tuple[str, str, str]:
    """The names of an option with its value, its text, and the limits of the value."""
    limits = []
    option_text = entry.names
    for key in ("Needs", "Excludes"):
        if match := re.search(rf" {key}: (\S+(?: -\S+)*)", option_text):
            related_options = " or ".join(f"`{name}`" for name in match[1].split())
            limits.append(f"{'only with' if key == 'Needs' else 'not with'} {related_options}")
            option_text = option_text.replace(match[0], "")
    if option_text.endswith(" REQUIRED"):
        limits.append("required")
        option_text = option_text.removesuffix(" REQUIRED")
    repeats = option_text.endswith(" ...")
    names, _, value = option_text.removesuffix(" ...").partition(" ")
    value, _, allowed_values = value.partition(":")
    if match := RANGE_PATTERN.match(allowed_values):
        limits += format_range(match[1], match[2])
    elif allowed_values.startswith("{"):
        choices = allowed_values.strip("{}").split(",")
        if not all(re.search(rf"(?<![\w-]){re.escape(choice)}(?![\w-])", entry.text) for choice in choices):
            limits.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    if value in VALUE_TYPES and not names.startswith("-"):
        value = ""
    quoted_names = [f"`{name}`" for name in names.split(",")]
    quoted_names[-1] = f"`{names.split(',')[-1]}{' ' + value if value else ''}{' ...' if repeats else ''}`"
    text = re.sub(r" \(docs/[\w./-]+\)", "", entry.text).replace("***", "`***`")
    text = re.sub(r"(?<![\w`-])--?[a-z][\w-]*(?!`)", lambda match: f"`{match[0]}`", text)
    text = re.sub(r"`(--(?:disclose|plot))` ([a-z]\w+)(?=[:,]|$)", r"`\1 \2`", text)
    return escape_cell(", ".join(quoted_names)), escape_cell(text), escape_cell("; ".join(limits))


def format_range(low: str, high: str) -> list[str]:
    """A range, without a bound so large that no one meets it."""
    if abs(float(high)) < 1e7:
        return [f"{low} to {high}"]
    return [] if float(low) <= 0 else [f"at least {low}"]


def escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(*rows: tuple[str, ...]) -> str:
    """The first row is the head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def make_option_table(head: str, rows: list[tuple[str, str, str]]) -> str:
    """A table of options. The column of limits is shown only if a row has some."""
    if any(limits for *_, limits in rows):
        return table((head, "limits", "meaning"), *((names, limits, text) for names, text, limits in rows))
    return table((head, "meaning"), *((names, text) for names, text, _ in rows))


def make_verb_section(program: Path, verb: tuple[str, ...]) -> str:
    """The section of a verb, followed by those of its sub-verbs."""
    help_text = parse_help(read_help_text(program, *verb))
    name = "joulemap " + " ".join(verb)
    parts = [f"{'#' * (len(verb) + 1)} {name}", to_sentence(help_text.summary)]
    parts.append("```text\n" + "\n".join(help_text.usages) + "\n```")
    for title, head in (("Positionals", "argument"), ("Options", "option")):
        rows = [
            make_option_cells(entry) for entry in help_text.sections.get(title, []) if not entry.names.startswith("-h,")
        ]
        if rows:
            parts.append(make_option_table(head, rows))
    if help_text.remarks:
        parts.append("\n".join(format_remarks(help_text.remarks)))
    for entry in help_text.sections.get("Subcommands", []):
        parts.append(make_verb_section(program, (*verb, entry.names)))
    return "\n\n".join(parts)


def format_remarks(remarks: list[str]) -> list[str]:
    """Text after the options. Lines with columns are shown as they are."""
    if any(re.search(r"\S {2,}\S", line) for line in remarks):
        return ["```text", *remarks, "```"]
    return remarks


def to_sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".") + "."


def parse_verbs(text: str) -> list[str]:
    """Verbs in the order of `joulemap help`."""
    return list(dict.fromkeys(re.findall(r"^  joulemap ([a-z]+) ", text, re.MULTILINE)))


def collect_options() -> list[tuple[str, str, str]]:
    """Options of `joulemap collect`, which is written in Python."""
    tree = ast.parse((PACKAGE_FOLDER / "_collect" / "command.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    rows = []
    for call in calls:
        if getattr(call.func, "attr", "") != "add_argument":
            continue
        name = call.args[0].value
        keyword_values = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
        value = (
            ""
            if keyword_values.get("action") == "store_true"
            else " " + (keyword_values.get("metavar") or name.strip("-").upper())
        )
        repetition_mark = " ..." if keyword_values.get("nargs") == "*" else ""
        rows.append((f"`{name}{value.replace('-', '_')}{repetition_mark}`", escape_cell(keyword_values["help"]), ""))
    return rows


def make_cli_page(program: Path) -> str:
    help_overview = read_help_text(program)
    verbs = parse_verbs(help_overview)
    summaries = {verb: parse_help(read_help_text(program, verb)).summary for verb in verbs}
    rows = [f"| [`{verb}`](#joulemap-{verb}) | {summaries[verb]} |" for verb in verbs]
    rows.append("| [`collect`](#joulemap-collect) | measure operations and networks on this GPU |")
    overview_sections = parse_help(help_overview).sections
    common_option_rows = [make_option_cells(entry) for entry in overview_sections["Common options"]]
    for entry in overview_sections["Options"]:
        if not entry.names.startswith(("-h,", "-V,")):
            names, text, _ = make_option_cells(entry)
            common_option_rows.append((names, text, "before the verb"))
    common_option_rows = [
        ("`-h`, `--help`", "print the help of the verb", ""),
        ("`-V`, `--version`", "print the version of the program", ""),
        *common_option_rows,
    ]
    introduction = CLI_INTRODUCTION.format(
        verbs="\n".join(rows), common=make_option_table("option", common_option_rows)
    )
    sections = [make_verb_section(program, (verb,)) for verb in verbs]
    collect = "\n\n".join(
        [
            "## joulemap collect",
            "Measure operations and networks on this GPU, as [data for predictions](prediction-data.md). Only the Python "
            "package has\nthis verb; it needs PyTorch. In a clone: `PYTHONPATH=build/python python3 -m joulemap collect`.",
            "```text\njoulemap collect [OPTIONS]\n```",
            make_option_table("option", collect_options()),
        ]
    )
    return "\n\n".join([introduction.strip(), *sections, collect]) + "\n"


# ---------------------------------------------------------------------------------------------------------------------
# Python: docstrings and signatures of the public names.

PYTHON_INTRODUCTION = """# Python

The public names of the package `joulemap`. `tools/make_reference.py` writes this page from the docstrings.

[Install it](../how-to/install.md) with pip. Importing the package starts no thread and opens no sensor: the first window
does. Unknown values are `None`, never 0. `energy_j`, `low_j`, `high_j` and `time_s` have these names in all results and in
the [JSON output](json.md). Intervals of windows cover 95 %, all others 90 %.

Measure a `with` statement, a function, or anything between two lines:

```python
import joulemap as jm

with jm.measure("squares") as m:
    sum(i * i for i in range(300_000))
print(m)         # energy with its interval, time, domains
print(m.joules)  # a float, or None; then m.reason is the cause


@jm.measure
def step():
    return sum(range(100_000))


step()
print(step.last, step.calls)
```

```python
import joulemap as jm

window = jm.begin("between two lines")
jm.end(window)
print(window.peek().seconds)  # without waiting for the sensors
```

Annotate a program that `joulemap record` measures. Without a recording these calls do nothing:

```python
import joulemap as jm

jm.epoch(0)
for number in range(3):
    jm.step(number)
    with jm.region("forward"):
        loss = 1.0 / (number + 1)
    jm.log(loss=loss, samples=32)
```

"""

# Group -> names: of the package itself (`measure`), of one of its modules (`keras.EnergyCallback`), or classes that
# results consist of (`_ledger.Row`), whose modules are private.
NAMES_BY_GROUP = {
    "Measure": ["measure", "begin", "end", "Measurement", "Energy", "Domain", "Diagnostic"],
    "Sensors": ["start", "stop", "doctor"],
    "Annotate a recording": ["region", "step", "epoch", "log", "engine_step", "engine_event", "is_recording"],
    "Record and attach": ["attach", "Attachment"],
    "Load and report": ["load", "Run", "Ledger", "_ledger.Row", "_layer_steps.LayerSteps"],
    "Predict": ["predict", "Prediction", "_prediction.Layer", "list_operations"],
    "Predict a training run while it runs": [
        "predict_total",
        "Forecast",
        "_forecast.Total",
        "_forecast.RecurringWork",
        "_forecast.DomainForecast",
    ],
    "Stop a training run early": ["EarlyStop"],
    "Tune settings": ["tune", "uniform", "log_uniform", "integers", "Trial", "TuneResult"],
    "Find the value of layers": ["layer_value", "_layer_value.LayerValues", "_layer_value.LayerValue"],
    "Validate the attribution": ["validate", "_validate_report.Validated", "_validate_report.ValidatedBlock"],
    "Import traces": ["module_names", "save_module_names"],
    "Trainers": [
        "keras.EnergyCallback",
        "keras.EarlyStopCallback",
        "lightning.EnergyCallback",
        "lightning.EarlyStopCallback",
        "huggingface.add_to",
        "huggingface.EnergyCallback",
        "huggingface.EarlyStopCallback",
    ],
    "Experiment trackers": ["mlflow.EnergyLogger", "wandb.EnergyLogger"],
    "Notebooks and pytest": ["_jupyter", "_pytest_plugin"],
    "Errors and version": ["JoulemapError", "version"],
}
# Names that jm.NAME takes from the compiled module: their docstrings are in its stub.
STUB_NAME_BY_EXPORT = {"region": "Region", "engine_step": "EngineStep", "is_recording": "is_recording"}
# Classes that the program creates itself; others are results.
CLASSES_CREATED_BY_USERS = ("EarlyStop", "EarlyStopCallback", "EnergyCallback", "EnergyLogger", "EngineStep", "Region")
CLASSES_WITH_SHOWN_BASE = ("Run",)
# Members that programs do not use: identity and memory of a window, the hook of LoopLogger.
INTERNAL_MEMBERS = ("id", "release", "log")
DEFINITION_TYPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass
class SourceModule:
    """The definitions of a source file, and the comment of each line: at its end, or alone on the line before."""

    doc: str
    nodes: dict[str, ast.AST]
    comments: dict[int, str]


def read_module(path: Path) -> SourceModule:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    nodes = {node.name: node for node in tree.body if isinstance(node, DEFINITION_TYPES)}
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    own_line_comments = {
        number: comment for number, comment in comments.items() if lines[number - 1].lstrip().startswith("#")
    }
    comments.update(
        {number + 1: comment for number, comment in own_line_comments.items() if number + 1 not in comments}
    )
    return SourceModule(ast.get_docstring(tree) or "", nodes, comments)


def package_names() -> tuple[list[str], dict[str, str]]:
    """__all__ of the package, and the module that defines each name."""
    tree = ast.parse((PACKAGE_FOLDER / "__init__.py").read_text(encoding="utf-8"))
    public: list[str] = []
    modules: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            modules.update({alias.name: node.module for alias in node.names})
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            public = ast.literal_eval(node.value)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_LAZY_MODULES":
            modules.update(ast.literal_eval(node.value))
    return public, modules


def is_public(name: str) -> bool:
    return not name.startswith("_")


def format_type(annotation: ast.AST) -> str:
    """Optional[X] as `X or None`, so that no reader needs the names of `typing`."""
    text = ast.unparse(annotation).strip("'\"")
    while match := re.search(r"Optional\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", text):
        text = text.replace(match[0], f"{match[1]} or None")
    while match := re.search(r"Union\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", text):
        text = text.replace(match[0], " or ".join(dict.fromkeys(part.strip() for part in split_commas(match[1]))))
    text = text.replace("None or str or Sequence[str]", "str or Sequence[str] or None")
    return text.replace("Path or None", "path or None") if text != "Path" else "path"


def split_commas(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def format_signature(name: str, function: ast.FunctionDef, *, is_method: bool) -> str:
    """`name(a, b=1) -> type`, wrapped at HELP_COLUMNS."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][1 if is_method else 0 :]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults[-len(positional) or None :]
    if not positional:
        defaults = []
    argument_texts = [format_argument(argument, default) for argument, default in zip(positional, defaults)]
    if arguments.vararg:
        argument_texts.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        argument_texts.append("*")
    argument_texts += [
        format_argument(argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    if arguments.kwarg:
        argument_texts.append(f"**{arguments.kwarg.arg}")
    returned = "" if function.returns is None or is_method is None else format_type(function.returns)
    arrow = f" -> {returned}" if returned not in ("", "None", "Any", "Self") else ""
    line = f"{name}({', '.join(argument_texts)}){arrow}"
    if len(line) <= HELP_COLUMNS:
        return line
    wrapped = textwrap.fill(
        ", ".join(argument_texts), HELP_COLUMNS - 4, initial_indent="    ", subsequent_indent="    "
    )
    return f"{name}(\n{wrapped}\n){arrow}"


def format_argument(argument: ast.arg, default: ast.AST | None) -> str:
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


def docstring_to_markdown(docstring: str) -> str:
    """A docstring as Markdown; examples stay indented."""
    return "\n\n".join(part.rstrip() for part in docstring.strip().split("\n\n"))


def one_line_cell(docstring: str | None) -> str:
    return escape_cell(" ".join((docstring or "").split()))


def decorator_names(node: ast.AST) -> set[str]:
    return {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}


def make_class_rows(module: SourceModule, node: ast.ClassDef) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Attributes (fields, attributes set in __init__, properties) and methods."""
    attributes, methods = [], []
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and is_public(member.target.id):
            attributes.append(make_attribute_row(module, member.target.id, member))
        elif isinstance(member, ast.FunctionDef) and "property" in decorator_names(member):
            if is_public(member.name):
                attributes.append((f"`{member.name}`", one_line_cell(ast.get_docstring(member))))
        elif isinstance(member, ast.FunctionDef) and member.name == "__init__":
            attributes += [
                make_attribute_row(module, name, attribute_node)
                for name, attribute_node in find_attributes_set_in(member)
            ]
        elif isinstance(member, ast.FunctionDef) and is_public(member.name) and not member.name.startswith("on_"):
            methods.append(
                (f"`{format_signature(member.name, member, is_method=True)}`", one_line_cell(ast.get_docstring(member)))
            )
    for name, text in [*attributes, *methods]:
        if not text and name.split("(")[0].strip("`") not in INTERNAL_MEMBERS:
            raise SystemExit(f"make_reference: {node.name}: describe {name}")
    return [row for row in attributes if row[1]], [row for row in methods if row[1]]


def find_attributes_set_in(function: ast.FunctionDef) -> Iterator[tuple[str, ast.AST]]:
    for statement in function.body:
        target = getattr(statement, "target", None) or getattr(statement, "targets", [None])[0]
        if isinstance(target, ast.Attribute) and is_public(target.attr):
            yield target.attr, statement


def make_attribute_row(module: SourceModule, name: str, statement: ast.AST) -> tuple[str, str]:
    comment = module.comments.get(statement.end_lineno, module.comments.get(statement.lineno, ""))
    if comment and "_" not in comment.split()[0]:
        comment = comment[0].upper() + comment[1:]
    return f"`{name}`", escape_cell(comment if not comment or comment.endswith(".") else comment + ".")


def list_own_bases(
    module: SourceModule, node: ast.ClassDef, read: dict[str, SourceModule]
) -> Iterator[tuple[SourceModule, ast.ClassDef]]:
    """The class, after those base classes that belong to the package."""
    for base in node.bases:
        name = ast.unparse(base).split(".")[-1]
        for package_module in read.values():
            if name in package_module.nodes and name not in ("Callback", "TrainerCallback"):
                yield from list_own_bases(package_module, package_module.nodes[name], read)
                break
    yield module, node


def make_class_section(
    heading: str, name: str, module: SourceModule, node: ast.ClassDef, read: dict[str, SourceModule]
) -> list[str]:
    lineage = list(list_own_bases(module, node, read))
    parts = [f"### {heading}"]
    if (shown_base_class := lineage[-2][1].name if len(lineage) > 1 else "") in CLASSES_WITH_SHOWN_BASE:
        parts.append(f"Extends `jm.{shown_base_class}`.")
    if node.name in CLASSES_CREATED_BY_USERS:
        members = [member for _, lineage_class in reversed(lineage) for member in lineage_class.body]
        created = [member for member in members if getattr(member, "name", "") == "__init__"]
        parts.append(make_code_block(format_signature(name, created[0], is_method=True) if created else f"{name}()"))
    own_docstring = ast.get_docstring(node) or ""
    inherited = [
        ast.get_docstring(base_class) or "" for _, base_class in lineage[:-1] if base_class.name == "LoopLogger"
    ]
    parts += [docstring_to_markdown(text) for text in (*inherited, own_docstring) if text]
    attributes: dict[str, str] = {}
    methods: dict[str, str] = {}
    lineage = [pair for pair in lineage if pair[1] is node or pair[1].name in ("LoopLogger", "Window")]
    for one_module, class_node in lineage:
        attribute_rows, method_rows = make_class_rows(one_module, class_node)
        attributes.update(attribute_rows)
        methods.update(method_rows)
    if attributes:
        parts.append(table(("attribute", "meaning"), *attributes.items()))
    if methods:
        one_line_cell = {
            " ".join(call.split()).replace("( ", "(").replace(" )", ")"): purpose for call, purpose in methods.items()
        }
        parts.append(table(("method", "purpose"), *one_line_cell.items()))
    return parts


def make_code_block(text: str) -> str:
    return f"```py\n{text}\n```"


def make_name_section(path: str, modules: dict[str, str], read: dict[str, SourceModule]) -> list[str]:
    if path.startswith("_") and "." not in path:  # a module whose docstring is all that a user needs
        return [docstring_to_markdown(read[path].doc)]
    place, _, name = path.rpartition(".")
    module_name = place or modules[path]
    if name in STUB_NAME_BY_EXPORT:
        module_name, name = "_hot", STUB_NAME_BY_EXPORT[name]
    module = read[module_name]
    node = module.nodes[name]
    shown_path = path.removeprefix(place + ".") if place.startswith("_") else path
    qualified_name = f"jm.{path}" if not place else f"joulemap.{path}" if is_public(place) else shown_path
    heading = f"`{qualified_name}`"
    if isinstance(node, ast.ClassDef):
        return make_class_section(heading, qualified_name, module, node, read)
    return [
        f"### {heading}",
        make_code_block(format_signature(qualified_name, node, is_method=False)),
        docstring_to_markdown(ast.get_docstring(node) or ""),
    ]


def make_python_page() -> str:
    public, modules = package_names()
    grouped_names = [name for names in NAMES_BY_GROUP.values() for name in names]
    ungrouped_names = sorted(set(public) - set(grouped_names) - {name.split(".")[-1] for name in grouped_names})
    if ungrouped_names:
        raise SystemExit(f"make_reference: put {', '.join(ungrouped_names)} into a group")
    read = {
        str(path.relative_to(PACKAGE_FOLDER).with_suffix("")).replace("/", "."): read_module(path)
        for path in [*sorted(PACKAGE_FOLDER.glob("_*.py")), *sorted(PACKAGE_FOLDER.glob("[a-z]*.py")),
                     PACKAGE_FOLDER / "_hot.pyi", PACKAGE_FOLDER / "_predict" / "operation_list.py"]
    }  # fmt: skip
    parts = [PYTHON_INTRODUCTION.strip()]
    for group, names in NAMES_BY_GROUP.items():
        parts.append(f"## {group}")
        previous_module = ""
        for path in names:
            place = path.partition(".")[0]
            if is_public(place) and place in read and place != previous_module:
                parts += [f"### `joulemap.{place}`", docstring_to_markdown(read[place].doc)]
                previous_module = place
            section = make_name_section(path, modules, read)
            if place == previous_module:
                section[0] = "#" + section[0]
            parts += section
    return "\n\n".join(part for part in parts if part) + "\n"


# ---------------------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=PROGRAM_PATH, help="the program that prints the help texts")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    arguments = parser.parse_args()
    pages = {"cli.md": make_cli_page(arguments.program), "python.md": make_python_page()}
    stale_count = 0
    for name, page_text in pages.items():
        path = REFERENCE_FOLDER / name
        existing_text = path.read_text(encoding="utf-8") if path.exists() else ""
        if existing_text == page_text:
            continue
        stale_count += 1
        if not arguments.check:
            path.write_text(page_text, encoding="utf-8")
            continue
        changes = difflib.unified_diff(
            existing_text.splitlines(), page_text.splitlines(), "committed", "made", n=0, lineterm=""
        )
        print("\n".join(list(changes)[:40]), file=sys.stderr)
        print(f"make_reference: docs/reference/{name} is out of date: run tools/make_reference.py", file=sys.stderr)
    return 1 if arguments.check and stale_count else 0


if __name__ == "__main__":
    sys.exit(main())
