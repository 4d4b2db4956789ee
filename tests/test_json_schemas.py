# SPDX-License-Identifier: Apache-2.0
"""docs/reference/schemas describes the JSON of the program: real outputs are valid, and have no key without description."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from cli.made_rows import make_domain, deterministic_noise, write_factorial, write_rows
from support.kineto_trace import begin_ns, training

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
EXAMPLE_RECORDING = ROOT / "examples" / "resnet50-h200.joule"
RECORDINGS = sorted((ROOT / "tests" / "data" / "recordings").glob("*.joule"))
LEVELS = [
    "domain",
    "phase",
    "layer",
    "op",
    "tensor",
    "function",
    "region",
    "kernel",
    "stack",
    "step",
    "epoch",
    "rank",
    "request",
    "token",
]
SYSROOTS = sorted(path.name for path in (ROOT / "tests" / "sysroots").iterdir() if path.is_dir())
INTERNAL_SCHEMAS = {"page", "profile"}  # of the page's own script, and of fitted profiles, which only the program reads
EXPERIMENT_TOML = """name = "small"
command = ["true"]
repetitions = 1
baseline_s = 0.1
warm_up_runs = 0
[factors]
level = ["a", "b"]
[cool_down]
power_within = 50
[checks]
require = []
"""


@cache
def read_schema(name: str) -> dict:
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def undescribed_keys(value: object, schema: dict, root: dict, json_path: str = "$") -> Iterator[str]:
    """Paths of keys that the schema does not mention."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from undescribed_keys(element, schema.get("items", {}), root, f"{json_path}[{index}]")
    elif isinstance(value, dict):
        property_schemas = dict(schema.get("properties", {}))
        for alternative in schema.get("oneOf", []):
            property_schemas.update(alternative["properties"])
        for key, member in value.items():
            described = property_schemas.get(key, schema.get("additionalProperties"))
            if described is None and property_schemas:
                yield f"{json_path}.{key}"
            elif described is not None:
                yield from undescribed_keys(member, described, root, f"{json_path}.{key}")


def check(document: dict, name: str) -> dict:
    schema = read_schema(name)
    assert document["schema"] == schema["title"]
    errors = [
        f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(document)
    ]
    assert errors == []
    assert list(undescribed_keys(document, schema, schema)) == []
    return document


@pytest.fixture
def print_and_check_json(joulemap):
    """printed("report", "report", FILE): the checked output of `joulemap report FILE --json`."""

    def run(schema: str, *arguments: object, code: int = 0) -> dict:
        command = list(arguments)
        place = command.index("--") if "--" in command else len(command)
        outcome = joulemap(*command[:place], "--json", *command[place:])
        assert outcome.code == code, outcome.err
        return check(outcome.json, schema)

    return run


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_valid_and_describe_every_key(path):
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)

    def check_descriptions(part: dict, json_path: str) -> None:
        assert part.get("description") or "$ref" in part, json_path
        for key, member in part.get("properties", {}).items():
            check_descriptions(member, f"{json_path}.{key}")
        if part.get("items", {}).get("properties"):
            check_descriptions(part["items"], f"{json_path}[]")
        for name, definition in part.get("$defs", {}).items():
            check_descriptions(definition, f"{json_path}/{name}")

    check_descriptions(schema, path.stem)


def test_every_schema_of_the_sources_has_a_file_and_is_on_the_page():
    sources = [*ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h"), *ROOT.glob("python/joulemap/**/*.py")]
    texts = "\n".join(path.read_text() for path in sources if not path.name.endswith("_test.cc"))
    schema_names = set(re.findall(r"\bjoulemap\.([a-z_]+)/\d\b", texts)) - INTERNAL_SCHEMAS
    assert schema_names == {path.stem for path in SCHEMAS.glob("*.json")}
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert schema_names == set(re.findall(r"\]\(schemas/([a-z_]+)\.json\)", page))


@pytest.mark.parametrize("level", LEVELS)
def test_report_at_every_level(print_and_check_json, level):
    report = print_and_check_json("report", "report", EXAMPLE_RECORDING, "--by", level)
    assert report["rows"] or level in ("epoch", "request", "token")  # the example has none of these


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_report_of_earlier_versions(print_and_check_json, recording):
    print_and_check_json("report", "report", recording)


@pytest.mark.parametrize("name", SYSROOTS)
def test_stat_and_doctor_of_every_machine(print_and_check_json, sysroots, name):
    print_and_check_json("doctor", "doctor", "--sysroot", sysroots / name)
    print_and_check_json("stat", "stat", "--sysroot", sysroots / name, "--", "true")


def test_stat_of_several_runs_with_intervals(print_and_check_json, sysroots):
    stat_report = print_and_check_json(
        "stat", "stat", "--sysroot", sysroots / "intel-2socket", "-r", 2, "-I", 20, "--", "sleep", "0.1"
    )
    assert len(stat_report["runs"]) == 2 and stat_report["runs"][0]["intervals"]


def test_record_and_share(print_and_check_json, sysroots, tmp_path):
    recording_file = tmp_path / "made.joule"
    print_and_check_json(
        "record", "record", "--sysroot", sysroots / "intel-2socket", "-o", recording_file, "--", "true"
    )
    print_and_check_json("report", "report", recording_file)
    print_and_check_json("share", "share", recording_file, "-o", tmp_path / "shared.joule")


def test_bundle_and_verify(print_and_check_json, tmp_path):
    bundle = tmp_path / "run.bundle"
    print_and_check_json("bundle", "bundle", RECORDINGS[-1], "-o", bundle)
    assert print_and_check_json("verification", "verify", bundle)["verified"]
    with tarfile.open(bundle) as archive:
        for name in ("manifest", "environment"):
            check(json.load(archive.extractfile(f"{name}.json")), name)
        for level in ("layer", "domain"):
            check(json.load(archive.extractfile(f"reports/{level}.json")), "report")
    bundle.write_bytes(bundle.read_bytes().replace(b'"by":"domain"', b'"by":"kernel"'))
    assert print_and_check_json("verification", "verify", bundle, code=1)["damage"]


def test_account_and_disclosures(print_and_check_json, joulemap):
    assumptions = ["--region", "France", "--pue", 1.2, "--price-per-kwh", 0.2, "--embodied-kg", 1500]
    assert print_and_check_json("report", "report", EXAMPLE_RECORDING, *assumptions)["account"]["entries"]
    for format, schema in {"sci": "sci", "eu-ai-act": "euaiact"}.items():
        outcome = joulemap("report", EXAMPLE_RECORDING, *assumptions, "--disclose", format)
        assert outcome.code == 0, outcome.err
        check(outcome.json, schema)


def test_announced_recording(binaries, sysroots, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as watched_process:
        command = [binaries / "joulemap", "record", "-p", watched_process.pid, "--announce", "--json",
                   "-o", tmp_path / "made.joule", "--sysroot", sysroots / "intel-2socket"]  # fmt: skip
        recorder = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        check(json.loads(recorder.stdout.readline()), "recording")
        watched_process.stdin.close()
        out, _ = recorder.communicate(timeout=60)
    check(json.loads(out.splitlines()[-1]), "record")


def test_calibration_matches_its_schema(print_and_check_json, sysroots):
    print_and_check_json(
        "calibrate", "calibrate", "--sysroot", sysroots / "intel-2socket", "--seconds", 0.2, "--no-load"
    )


def test_advice_matches_its_schema(print_and_check_json):
    print_and_check_json("advice", "advise", EXAMPLE_RECORDING)
    print_and_check_json("advice", "advise", RECORDINGS[-1])


def test_diff_of_the_example(print_and_check_json):
    print_and_check_json("diff", "diff", EXAMPLE_RECORDING, EXAMPLE_RECORDING)


@pytest.mark.parametrize(
    "level", ["domain", "phase", "layer", "op", "tensor", "function", "region", "kernel", "operator"]
)
def test_diff_at_every_level(print_and_check_json, level):
    print_and_check_json(
        "diff", "diff", RECORDINGS[-1], RECORDINGS[-2], "--by", level, "--whole-run", "--fail-over", "100000%"
    )


def test_predictions_match_their_schema(print_and_check_json):
    keras, onnx = ROOT / "tests/data/keras/tiny_cnn_keras3.json", ROOT / "tests/data/onnx/resnet18.onnx"
    print_and_check_json("prediction", "predict", keras)
    print_and_check_json(
        "prediction", "predict", keras, "--pass", "training", "--steps", 10, "--inferences", 100, "--price-per-kwh", 0.2
    )
    print_and_check_json("prediction", "predict", onnx, "--batch", 8, "--device", "a100", "--explain")


@pytest.mark.parametrize("name", ["torch.nn.Conv2d", "torch.nn.ReLU", "Gemm"])
def test_operation_cards_match_their_schema(print_and_check_json, name):
    print_and_check_json("card", "operation", name)


def test_model_evaluation_matches_its_schema(print_and_check_json, tmp_path):
    with gzip.open(ROOT / "data" / "h200" / "operations.csv.gz", "rt") as file:
        head, *lines = file.readlines()
    with gzip.open(tmp_path / "operations.csv.gz", "wt") as file:
        file.writelines([head, *lines[::60]])
    print_and_check_json("evaluation", "model", "eval", tmp_path, "--folds", 2)


def test_import_of_a_trace(print_and_check_json, tmp_path):
    trace, power = training().write(tmp_path / "trace.json"), tmp_path / "power.csv"
    times = [begin_ns() + number * 10_000_000 for number in range(-100, 300)]
    power.write_text("time_unix_ns,domain,kind,value\n" + "".join(f"{time},gpu0,power_w,200\n" for time in times))
    print_and_check_json("import", "import", trace, "--power", power, "-o", tmp_path / "made.joule")
    print_and_check_json("report", "report", tmp_path / "made.joule")
    print_and_check_json("import", "import", trace, "-o", tmp_path / "timed.joule")
    assert print_and_check_json("report", "report", tmp_path / "timed.joule")["measured_j"] is None


def test_import_of_an_experiment(print_and_check_json, tmp_path):
    power, epochs = tmp_path / "power.csv", tmp_path / "epochs.csv"
    head = "timestamp, power.draw [W]\n"
    power.write_text(
        head
        + "".join(
            f"2024/05/01 10:00:{second_of_minute:02}.000, {90 + second_of_minute} W\n" for second_of_minute in range(20)
        )
    )
    epochs.write_text("epoch;accuracy;timestamp\n0;0.5;2024-05-01 10:00:08\n1;0.7;2024-05-01 10:00:16\n")
    options = ["--epochs", epochs, "--utc-offset", "+00:00", "-o", tmp_path / "made"]
    print_and_check_json("import", "import", "nvidia-smi", power, *options)
    print_and_check_json("analysis", "experiment", "analyze", tmp_path / "made")


def test_experiment_from_plan_to_status(print_and_check_json, sysroots, tmp_path):
    plan, folder = tmp_path / "experiment.toml", tmp_path / "made"
    plan.write_text(EXPERIMENT_TOML)
    planned = print_and_check_json("experiment", "experiment", "plan", plan)
    assert planned["forecast"] is None
    options = ["-o", folder, "--sysroot", sysroots / "intel-2socket"]
    experiment_result = print_and_check_json("experiment", "experiment", "run", plan, *options)
    assert experiment_result["counts"]["done"] == 2
    print_and_check_json("experiment", "experiment", "status", folder)
    check(json.loads((folder / "plan.json").read_text()), "plan")
    for row in folder.glob("rows/*/attempt-*/row.json"):
        check(json.loads(row.read_text()), "row")
    print_and_check_json("analysis", "experiment", "analyze", folder)


def test_experiment_analysis_matches_its_schema(print_and_check_json, tmp_path):
    def row(level: int, block: int) -> dict:
        joules = 100 + 20 * level + deterministic_noise(block)
        accuracy = {"accuracy": 0.9 - 0.1 * level + deterministic_noise(block) / 100}
        domains = [make_domain("package-0", joules), make_domain("gpu0", 2 * joules)]
        return {"elapsed_s": joules / 50, "metrics": accuracy, "domains": domains}

    analysis = print_and_check_json("analysis", "experiment", "analyze", write_rows(tmp_path / "made", row))
    assert analysis["comparisons"] and analysis["pareto"]

    factors = {"framework": ["a", "b", "c"], "model": ["m", "n"], "batch": ["1", "2"]}
    folder = write_factorial(tmp_path / "factorial", factors, lambda cell, block: row(sum(cell), block + cell[1]), 3)
    analysis = print_and_check_json("analysis", "experiment", "analyze", folder)
    assert analysis["main_effects"] and analysis["interactions"] and analysis["correlations"]


def run_python(binaries: Path, code: str, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(binaries.parent / "python")}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_files_of_the_python_package(binaries, tmp_path):
    code = """
import sys
from joulemap._training_meter import TrainingMeter
meter = TrainingMeter(sys.argv[1])
meter.begin()
meter.end()
"""
    run_python(binaries, code, tmp_path / "total.json")
    check(json.loads((tmp_path / "total.json").read_text()), "total")


def test_operation_lists(binaries):
    pytest.importorskip("torch")
    code = """
import json, torch, joulemap
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
print(json.dumps(joulemap.list_operations(model, torch.zeros(2, 3, 8, 8), training=True, optimizer="sgd")))
"""
    check(json.loads(run_python(binaries, code)), "operations")


BENCH_ENGINE_PROGRAM = """
class Engine:
    vocabulary = 100

    def __init__(self):
        self.requests = []

    def submit(self, request):
        if request.id == "request-5":
            raise ValueError("refused")
        self.requests.append([request, request.max_new_tokens])

    def has_work(self):
        return bool(self.requests)

    def step(self):
        for entry in list(self.requests):
            entry[1] -= 1
            entry[0].on_token(7, entry[1] == 0)
            if entry[1] == 0:
                self.requests.remove(entry)
"""


@pytest.mark.parametrize("options", [["--requests", 8, "--rate", "20,40"], ["--requests", 1]])
def test_benchmarks_of_serving(binaries, tmp_path, options):
    (tmp_path / "engine.py").write_text(BENCH_ENGINE_PROGRAM)
    code = "import sys; from joulemap._bench_serve.command import main; sys.exit(main(sys.argv[1:]))"
    tenants = ["--tenant", "chat=3,search", "--output-tokens", "2..4"]
    benchmark_output = run_python(
        binaries, code, "--engine", f"{tmp_path}/engine.py:Engine", *options, *tenants, "--json"
    )
    document = check(json.loads(benchmark_output), "bench_serve")
    assert [level["steady"] is None for level in document["levels"]] == ([True] if 1 in options else [False, False])
    assert any(level["failures"] for level in document["levels"]) == (1 not in options)
