"""Every verb refuses unknown arguments with exit code 2 before it does anything. The tests read verbs and options from
the program's own help, so they cover new ones."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

USAGE_EXIT_CODE = 2
VERBS_WITH_COMMAND = (("stat",), ("record",))
# Value types in the help that are numbers.
NUMERIC_VALUE_TYPES = ("B", "F", "G", "GRAMS", "MS", "N", "P", "PID", "S", "UNIX_NS", "W", "X")
MAY_BE_NEGATIVE = ("--offset-ms",)
EXAMPLE_RECORDING = Path(__file__).resolve().parent.parent / "data" / "recordings" / "v1.0.joule"


class Program:
    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *words: object, **options) -> subprocess.CompletedProcess:
        command = [str(self.path), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)

    @lru_cache(maxsize=None)  # noqa: B019
    def help(self, verb: tuple[str, ...]) -> str:
        help_process = self.run(*verb, "--help")
        assert help_process.returncode == 0, help_process.stderr
        return help_process.stdout

    def verbs(self, parent_verbs: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        """All verbs without subcommands: ("diff",), ("experiment", "run") ..."""
        subcommand_help = self.help(parent_verbs).partition("Subcommands:\n")[2]
        names = re.findall(r"^  (\S+)", subcommand_help, re.MULTILINE)
        if not parent_verbs:  # the overview
            names = re.findall(r"^  joulemap (\S+)", self.help(parent_verbs), re.MULTILINE)
        return [leaf for name in names for leaf in self.verbs((*parent_verbs, name))] if names else [parent_verbs]

    def options(self, verb: tuple[str, ...]) -> dict[str, str]:
        """The long options of a verb, each with the name of its value: "" for a flag."""
        option_section = self.help(verb).partition("Options:\n")[2]
        option_matches = re.findall(
            r"^  (?:-\w,)?(--[\w-]+)(?: (\[?[A-Z_|,=]+\]?)(?=[\s:]))?", option_section, re.MULTILINE
        )
        return {name: value for name, value in option_matches if name != "--help"}


@pytest.fixture(scope="module")
def program(binaries: Path) -> Program:
    return Program(binaries / "joulemap")


def misspell_option(option: str, known_options: dict[str, str]) -> str:
    """The option without its last letter, or with one letter more if that is too short or another option."""
    truncated_option = option[:-1]
    return truncated_option if len(truncated_option) > 4 and truncated_option not in known_options else option + "x"


def test_the_help_names_the_verbs_and_options_that_are_tested_here(program):
    verbs = program.verbs()
    assert len(verbs) >= 19 and {("diff",), ("stat",), ("experiment", "analyze"), ("model", "fit")} <= set(verbs)
    assert {"--fail-over": "SHARE", "--by": "LEVEL", "--json": ""}.items() <= program.options(("diff",)).items()


def test_every_verb_refuses_an_unknown_option(program, tmp_path):
    for verb in program.verbs():
        for unknown in ("--zzyzx-unknown", "--zzyzx-unknown=3", "-Z"):
            completed_process = program.run(*verb, unknown, cwd=tmp_path)
            assert completed_process.returncode == USAGE_EXIT_CODE, (verb, unknown)
            assert (
                f"joulemap {' '.join(verb)}: unknown option {unknown.partition('=')[0]}" in completed_process.stderr
            ), completed_process.stderr
            assert completed_process.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_every_mistyped_option_is_refused_with_the_nearest_known_one(program, tmp_path):
    for verb in program.verbs():
        known_options = program.options(verb)
        for option, value in known_options.items():
            misspelled_option = misspell_option(option, known_options)
            completed_process = program.run(*verb, misspelled_option, *(["1"] if value else []), cwd=tmp_path)
            assert completed_process.returncode == USAGE_EXIT_CODE, (verb, misspelled_option)
            assert f"unknown option {misspelled_option}; did you mean --" in completed_process.stderr, (
                verb,
                misspelled_option,
                completed_process.stderr,
            )
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_gate_of_a_diff_does_not_pass(joulemap):
    assert joulemap("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--fail-over", "1%").code != USAGE_EXIT_CODE
    diff_outcome = joulemap("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--fail-ovr", "1%")
    assert diff_outcome.code == USAGE_EXIT_CODE
    assert diff_outcome.err.startswith("joulemap diff: unknown option --fail-ovr; did you mean --fail-over?\n")


def test_every_verb_but_those_around_a_command_refuses_surplus_words(program, tmp_path):
    """Surplus words include "++", which CLI11 treats specially, and the name of another verb, which must not run."""
    arguments = {
        ("calibrate",): (), ("operation",): ("Gemm",), ("doctor",): (), ("predict",): ("a",),
        ("experiment", "plan"): ("a",), ("experiment", "run"): ("a",), ("experiment", "resume"): ("a",),
        ("experiment", "status"): ("a",), ("experiment", "submit"): ("a",), ("experiment", "analyze"): ("a",),
        ("share",): ("a", "-o", "b"), ("completion",): ("bash",), ("man",): ("pages",), ("verify",): ("a",),
        ("bench", "serve"): (),
    }  # fmt: skip
    any_number_verbs = {("advise",), ("bundle",), ("diff",), ("export",), ("import",), ("open",), ("report",)}
    any_number_verbs |= {("model", "fit"), ("model", "eval"), ("experiment", "run-row")}
    assert set(program.verbs()) == {*arguments, *any_number_verbs, *VERBS_WITH_COMMAND}
    for verb, words in arguments.items():
        for surplus in ("surplus", "doctor", "++"):
            completed_process = program.run(*verb, *words, surplus, cwd=tmp_path)
            assert completed_process.returncode == USAGE_EXIT_CODE, (verb, surplus)
            assert f"joulemap {' '.join(verb)}: unexpected argument {surplus}" in completed_process.stderr, (
                completed_process.stderr
            )
    for verb in any_number_verbs:
        completed_process = program.run(*verb, "a", "b", "++", cwd=tmp_path)
        assert (
            completed_process.returncode == USAGE_EXIT_CODE and "unexpected argument ++" in completed_process.stderr
        ), (verb, completed_process.stderr)
    assert program.run("diff", "a", "b", "c", cwd=tmp_path).returncode == USAGE_EXIT_CODE


def test_every_verb_that_runs_no_command_refuses_words_after_dashes(program, tmp_path):
    for verb in program.verbs():
        if verb in (*VERBS_WITH_COMMAND, ("experiment", "submit")):
            continue
        words = {("operation",): ["Gemm"], ("diff",): ["a", "b"], ("doctor",): [], ("calibrate",): [],
                 ("bench", "serve"): []}.get(verb, ["a"])  # fmt: skip
        words += {("export",): ["--to", "csv"], ("import",): ["b", "-o", "c"]}.get(verb, [])
        words += ["-o", "c"] if verb in (("model", "fit"), ("share",)) else []
        completed_process = program.run(*verb, *words, "--", "true", cwd=tmp_path)
        assert completed_process.returncode == USAGE_EXIT_CODE, verb
        assert "does not run a command" in completed_process.stderr, completed_process.stderr


def test_every_number_is_finite_and_in_its_range(program, tmp_path):
    tested_value_count = 0
    for verb in program.verbs():
        for option, value in program.options(verb).items():
            if value not in NUMERIC_VALUE_TYPES:
                continue
            for invalid_number in (
                "nan",
                "inf",
                "-inf",
                "banana",
                "",
                "1e999",
                *([] if option in MAY_BE_NEGATIVE else ["-1"]),
            ):
                completed_process = program.run(*verb, option, invalid_number, cwd=tmp_path)
                assert completed_process.returncode == USAGE_EXIT_CODE, (verb, option, invalid_number)
                assert completed_process.stderr.splitlines()[0].startswith(f"joulemap {' '.join(verb)}: "), (
                    completed_process.stderr
                )
                assert option in completed_process.stderr, (verb, option, invalid_number, completed_process.stderr)
                tested_value_count += 1
    assert tested_value_count > 100


def test_no_option_takes_an_empty_value(program, tmp_path):
    """A script that calls --fail-over "$LIMIT" with LIMIT unset."""
    for verb in program.verbs():
        for option, value in program.options(verb).items():
            if not value or value.startswith("["):
                continue
            for words in ([option, ""], [f"{option}=", "run.joule"]):
                completed_process = program.run(*verb, *words, cwd=tmp_path)
                assert completed_process.returncode == USAGE_EXIT_CODE, (verb, words)
                assert option in completed_process.stderr, (verb, words, completed_process.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_not_written_over_a_recording_whose_option_has_no_value(program, tmp_path):
    recording = tmp_path / "run.joule"
    recording.write_bytes(EXAMPLE_RECORDING.read_bytes())
    completed_process = program.run("report", "--html=", recording, EXAMPLE_RECORDING)
    assert completed_process.returncode == USAGE_EXIT_CODE
    assert completed_process.stderr.startswith("joulemap report: --html has an empty value\n")
    assert recording.read_bytes() == EXAMPLE_RECORDING.read_bytes()


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--by", "nonsense"), "layer"),
        (("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--per", "hour"), "epoch"),
        (("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--fail-over", "banana"), "5%"),
        (("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--fail-over", "nan"), "5%"),
        (("diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING, "--fail-over", "-5%"), "5%"),
        (("report", EXAMPLE_RECORDING, "--by", "nonsense"), "kernel"),
        (("report", EXAMPLE_RECORDING, "--sort", "nonsense"), "energy"),
        (("report", EXAMPLE_RECORDING, "--time", "nan,5"), "30,60"),
        (("report", EXAMPLE_RECORDING, "--time", "9,5"), "30,60"),
        (("record", "--period", "-5", "true"), "0.1 to 60000"),
        (("record", "--period", "nan", "true"), "0.1 to 60000"),
        (("record", "--trace", "nonsense", "true"), "kernels"),
        (("stat", "--sensors", "nonsense", "true"), "powercap"),
        (("predict", "model.onnx", "--device", "nonsense"), "h200"),
        (("predict", "model.onnx", "--input", "8xbanana"), "8x3x224x224"),
        (("operation", "Gemm", "--device", "nonsense"), "h200"),
        (("experiment", "analyze", "folder", "--adjust", "nonsense"), "holm"),
    ],
)
def test_a_wrong_value_is_refused_with_those_that_are_allowed(joulemap, words, allowed, tmp_path):
    command_outcome = joulemap(*words, cwd=tmp_path)
    assert command_outcome.code == USAGE_EXIT_CODE, command_outcome.err
    assert allowed.lower() in command_outcome.err.lower()


def test_a_wrong_verb_is_refused_with_the_nearest_one(joulemap):
    for words, message in (
        (("reprot", "a"), "joulemap: unknown verb 'reprot'; did you mean report?"),
        (("experiment", "analyse", "a"), "joulemap experiment: unknown verb 'analyse'; did you mean analyze?"),
        (("zzyzx",), "joulemap: unknown verb 'zzyzx'\n"),
        (("--sysrot", "x", "doctor"), "unknown option --sysrot; did you mean --sysroot?"),
        (("--", "true"), "joulemap: a verb is required"),
        (("stat", "--output=", "ls", "-l"), "joulemap stat: --output has an empty value"),
        (("report", "a", "--replay", "b"), "joulemap report: --replay must precede the verb"),
        (("--replay", "missing", "doctor"), "joulemap doctor: this verb does not replay samples"),
        (("report", "a", "--by", "layer", "--by", "op"), "joulemap report: --by is given 2 times"),
        (("report", "a", "--sort", "3"), "--sort: '3' is not one of energy, time, power, count, name, order"),
        (("report", "a", "--color", "1"), "--color: '1' is not one of auto, always, never"),
    ):
        command_outcome = joulemap(*words)
        assert command_outcome.code == USAGE_EXIT_CODE
        assert message.replace("'", '"') in command_outcome.err.replace("'", '"'), command_outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--html", "page.html", "-o", "other"), "-o has no effect with --html"),
        (("--into", "missing"), "--into has no effect without --disclose"),
        (("--stage", "training"), "--stage has no effect without --disclose"),
        (("--hardware", "GPU"), "--hardware has no effect without --disclose, --model-card or --cite"),
        (("--plot", "box", "--smooth", "3", "-o", "p.svg"), "--smooth has no effect without --plot lines"),
    ],
)
def test_options_that_the_output_does_not_use_are_refused(joulemap, tmp_path, options, message):
    outcome = joulemap("report", EXAMPLE_RECORDING, *options, cwd=tmp_path)
    assert outcome.code == USAGE_EXIT_CODE and message in outcome.err, outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("configuration", "messages"),
    [
        ("[report]\nperiod = 20\n", ("'period' is not a key of [report]", "pue, region")),
        ("[record]\nfoo = 1\n", ("unknown key 'foo' of [record]", "are color, period, sensors, trace\n")),
        ("perod = 20\n", ("unknown key 'perod'", "did you mean period?")),
        ('color = "foo"\n', ("'foo' is not one of auto, always, never",)),
    ],
)
def test_wrong_configurations_are_refused_with_what_is_allowed(joulemap, tmp_path, configuration, messages):
    (tmp_path / "joulemap.toml").write_text(configuration)
    outcome = joulemap("report", EXAMPLE_RECORDING, cwd=tmp_path, env={"JOULEMAP_CONFIG": "joulemap.toml"})
    assert outcome.code == USAGE_EXIT_CODE
    for message in messages:
        assert message in outcome.err, outcome.err


@pytest.mark.parametrize("verb", ["stat", "record"])
def test_command_words_are_passed_through_unchanged(joulemap, verb, tmp_path):
    show = "import sys; print(*sys.argv[1:], sep='|')"
    words = ["--json=", "--fail-ovr", "-Z", "++", "doctor", "", "--", "--by"]
    for dashes in ((), ("--",)):
        command_outcome = joulemap(verb, "--sensors", "estimate", *dashes, "python3", "-c", show, *words, cwd=tmp_path)
        assert command_outcome.code == 0, command_outcome.err
        assert command_outcome.out == "--json=|--fail-ovr|-Z|++|doctor||--|--by\n"


def test_a_command_may_have_the_name_of_a_verb(joulemap, tmp_path):
    command = tmp_path / "import"
    command.write_text('#!/bin/sh\necho ran "$@"\n')
    command.chmod(0o755)
    stat_outcome = joulemap("stat", "--sensors", "estimate", "import", "a", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert stat_outcome.code == 0 and stat_outcome.out == "ran a\n", stat_outcome.err
