"""predict, card and model: energies before a run, and the output where no prediction is possible."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from support.onnx_bytes import integers_attribute, model, node, value, weight_tensor

ROOT = Path(__file__).resolve().parents[2]
RESNET = ROOT / "tests" / "data" / "onnx" / "resnet18.onnx"

RESULT_KEYS = {
    "schema", "interval", "model", "format", "device", "basis", "pass", "batch", "precision", "mode", "optimizer",
    "energy_j", "low_j", "high_j", "time_s", "power_w", "gpu_s", "host_s", "idle_j", "flops", "is_total_sound",
    "is_lower_bound", "co2_kg", "price", "layers", "unknown_ops", "tariff", "lifetime", "explanation", "notes",
    "diagnostics",
}  # fmt: skip


def small_network(batch: object = 2, *more: bytes) -> bytes:
    """A model of a convolution, an activation and the given nodes, which read "y" and write "z"."""
    nodes = [
        node(
            "Conv",
            ["x", "w"],
            ["c"],
            integers_attribute("kernel_shape", [3, 3]),
            integers_attribute("pads", [1, 1, 1, 1]),
        ),
        node("Relu", ["c"], ["y"]),
        *more,
    ]
    output_name = "z" if more else "y"
    return model(
        nodes,
        [value("x", [batch, 3, 32, 32])],
        [value(output_name, [batch, 16, 32, 32])],
        [weight_tensor("w", [16, 3, 3, 3])],
    )


@pytest.fixture
def network(tmp_path: Path):
    def write(content: bytes, name: str = "model.onnx") -> Path:
        file = tmp_path / name
        file.write_bytes(content)
        return file

    return write


def test_a_prediction_has_every_key_and_adds_up(joulemap):
    outcome = joulemap("predict", RESNET, "--json")
    result = outcome.json
    assert outcome.code == 0, outcome.err
    assert set(result) == RESULT_KEYS
    assert result["schema"] == "joulemap.prediction/1" and result["interval"] == 0.9
    assert result["model"] == "resnet18", "exporters call every graph the same"
    assert result["pass"] == "inference" and result["basis"] == "fitted" and "H200" in result["device"]
    assert 0 < result["low_j"] < result["energy_j"] < result["high_j"]
    assert result["power_w"] == pytest.approx(result["energy_j"] / result["time_s"], rel=1e-6)
    for layer in result["layers"]:
        assert {"name", "op", "energy_j", "low_j", "high_j", "time_s"} <= set(layer)
        assert layer["low_j"] <= layer["energy_j"] <= layer["high_j"]
    summed = sum(layer["energy_j"] for layer in result["layers"]) + result["idle_j"]
    assert summed == pytest.approx(result["energy_j"], rel=1e-6)
    assert result["unknown_ops"] == [] and result["is_total_sound"]
    assert result["price"] is None and result["lifetime"] is None and result["explanation"] is None
    assert any("no GPU given" in note for note in result["notes"])


def test_resnet18_has_the_flops_that_it_is_known_for(joulemap):
    result = joulemap("predict", RESNET, "--batch", 1, "--json").json
    assert result["flops"] == pytest.approx(3.64e9, rel=0.02), (
        "1.82 billion multiply-adds, and what is element by element"
    )


def test_batch_overrides_the_file_and_reports_it(joulemap):
    single_sample_prediction, large_batch_prediction = (
        joulemap("predict", RESNET, "--batch", batch, "--json").json for batch in (1, 64)
    )
    assert large_batch_prediction["batch"] == 64 and single_sample_prediction["batch"] == 1
    assert large_batch_prediction["flops"] == pytest.approx(64 * single_sample_prediction["flops"], rel=0.01)
    assert large_batch_prediction["energy_j"] > 5 * single_sample_prediction["energy_j"]
    assert any("64" in note for note in large_batch_prediction["notes"])
    assert "per sample" in joulemap("predict", RESNET, "--batch", 64).out


def test_a_training_step_uses_more_energy_than_a_pass_and_has_an_optimizer(joulemap):
    entry = {
        name: joulemap("predict", RESNET, "--batch", 32, "--pass", name, "--json").json
        for name in ("inference", "training")
    }
    assert 2 < entry["training"]["energy_j"] / entry["inference"]["energy_j"] < 6
    assert entry["training"]["optimizer"] == "adamw" and entry["inference"]["optimizer"] is None


@pytest.mark.parametrize("options", [["--precision", "bf16"], ["--execution", "compiled"], ["--precision", "amp-bf16"]])
def test_precision_and_mode_change_what_is_predicted(joulemap, options):
    precision = [] if "--precision" in options else ["--precision", "fp32"]
    fp32_prediction = joulemap("predict", RESNET, "--batch", 64, "--precision", "fp32", "--json").json
    variant_prediction = joulemap("predict", RESNET, "--batch", 64, *precision, *options, "--json").json
    assert 0 < variant_prediction["energy_j"] < fp32_prediction["energy_j"]


def test_a_model_may_come_from_stdin(joulemap):
    keras = ROOT / "tests" / "data" / "keras" / "tiny_cnn_keras3.json"
    from_file = joulemap("predict", keras, "--batch", 4, "--json").json
    from_stdin = joulemap("predict", "-", "--batch", 4, "--json", input=keras.read_text()).json
    assert from_file["format"] == "keras" and from_stdin["energy_j"] == from_file["energy_j"]


def test_a_traced_list_contains_its_sizes_and_types(joulemap):
    dense_parameters = {"rows": 64, "in": 512, "out": 512, "bias": 1}
    operation = {"layer": "fc", "source": "aten.addmm", "kind": "dense", "form": "", "parameters": dense_parameters}
    operation |= {"dtype": "bf16", "pass": "forward", "phase": "forward", "gradient": "all", "count": 1}
    operation_list = {
        "schema": "joulemap.operations/1",
        "name": "Net",
        "format": "torch",
        "pass": "inference",
        "notes": [],
    }
    operation_list |= {"operations": [operation], "unknown": [], "weight_tensors": 2, "weight_elements": 512 * 513}
    text = json.dumps(operation_list)
    outcome = joulemap("predict", "-", "--json", input=text)
    assert outcome.code == 0, outcome.err
    assert outcome.json["precision"] == "traced" and outcome.json["format"] == "torch"
    assert [layer["name"] for layer in outcome.json["layers"]] == ["fc"]
    for options in (["--batch", "8"], ["--input", "8x512"], ["--precision", "fp16"]):
        conflict_outcome = joulemap("predict", "-", *options, input=text)
        assert conflict_outcome.code == 2 and "->" in conflict_outcome.err, options


def test_an_unspecified_batch_size_must_be_given(joulemap, network):
    file = network(small_network("batch"))
    outcome = joulemap("predict", file, "--json")
    explicit_batch_outcome = joulemap("predict", file, "--batch", 2, "--json")
    assert explicit_batch_outcome.code == 0, explicit_batch_outcome.err
    assert (
        explicit_batch_outcome.json["energy_j"]
        == joulemap("predict", network(small_network(2)), "--json").json["energy_j"]
    )
    assert outcome.code == 1 or outcome.json["notes"], "either it says that a size is missing, or which one it took"
    input_shape_outcome = joulemap("predict", file, "--input", "x=2x3x32x32", "--json")
    assert input_shape_outcome.json["energy_j"] == explicit_batch_outcome.json["energy_j"]


@pytest.mark.parametrize(
    "options",
    [
        ["--batch", "0"], ["--batch", "-4"], ["--batch", "many"], ["--input", "3x0x4"], ["--input", "x=3xx4"],
        ["--input", "99999999999x99999999999"], ["--pass", "sideways"], ["--precision", "fp8"], ["--execution", "lazy"],
        ["--optimizer", "magic"], ["--pue", "0.5"], ["--price-per-kwh", "-1"], ["--explain", "no-such-layer"],
        ["--host-factor", "0"], ["--idle-w", "0"], ["--", "true"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_2(joulemap, network, options):
    outcome = joulemap("predict", network(small_network()), *options)
    assert outcome.code == 2, outcome.out + outcome.err
    assert outcome.err


def test_no_model_is_wrong_usage(joulemap):
    assert joulemap("predict").code == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"class_name": 3}',
        b"PK\x03\x04....",
        b"\x89HDF....",
        b"\x08",
        b"GIF89a",
        b'{"schema": "joulemap.operations/9"}',
    ],
    ids=["empty", "no graph", "no layers", "zip", "hdf5", "cut", "picture", "newer list"],
)
def test_input_that_is_not_a_network_is_rejected_with_a_reason(joulemap, network, content):
    outcome = joulemap("predict", network(content))
    assert outcome.code == 1, outcome.out + outcome.err
    assert "model.onnx" in outcome.err and outcome.out == ""


def test_predict_handles_truncated_files(joulemap, network):
    model_bytes = small_network()
    for length in range(0, len(model_bytes), 23):
        assert joulemap("predict", network(model_bytes[:length])).code in (0, 1)


def test_files_and_folders_that_are_not_there_are_named(joulemap, tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        outcome = joulemap("predict", path)
        assert outcome.code == 1 and str(path) in outcome.err
    outcome = joulemap("predict", RESNET, "-o", tmp_path / "none" / "out.txt")
    assert outcome.code == 1


def test_a_gpu_that_was_never_measured_is_marked_and_has_wider_intervals(joulemap):
    measured, datasheet_outcome = (joulemap("predict", RESNET, "--device", name, "--json") for name in ("H200", "a100"))
    assert datasheet_outcome.code == 0 and datasheet_outcome.json["basis"] == "datasheet"
    assert "datasheet_only" in {diagnostic["code"] for diagnostic in datasheet_outcome.json["diagnostics"]}

    def width(result: dict) -> float:
        return (result["high_j"] - result["low_j"]) / result["energy_j"]

    assert width(datasheet_outcome.json) > width(measured.json)
    unknown = joulemap("predict", RESNET, "--device", "abacus")
    assert unknown.code != 0 and "->" in unknown.err and "H200" in unknown.err


@pytest.mark.parametrize(
    ("name", "device"),
    [("l4", "NVIDIA L4"), ("NVIDIA A100 80GB PCIe", "NVIDIA A100 PCIe 80GB"), ("Tesla T4", "NVIDIA T4"), ("h20", None),
     ("NVIDIA H100 NVL", None), ("nvidia", None)],
)  # fmt: skip
def test_a_gpu_is_identified_by_whole_words(joulemap, name, device):
    outcome = joulemap("predict", RESNET, "--device", name, "--json")
    if device is None:
        assert outcome.code == 2 and "known GPUs: NVIDIA H200" in outcome.err
    else:
        assert outcome.json["device"] == device


def test_inputs_of_a_keras_model_set_its_batch(joulemap, tmp_path):
    layers = [
        {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 32, 32, 3]}},
        {"class_name": "Conv2D", "config": {"name": "c", "filters": 8, "kernel_size": [3, 3]}},
    ]
    file = tmp_path / "m.json"
    file.write_text(json.dumps({"class_name": "Sequential", "config": {"name": "m", "layers": layers}}))
    for shape, batch in (("32x32x3", 1), ("4x32x32x3", 4), ("x=4x32x32x3", 4)):
        assert joulemap("predict", file, "--input", shape, "--json").json["batch"] == batch
    outcome = joulemap("predict", file, "--input", "foo=4x32x32x3")
    assert outcome.code == 2 and "no input 'foo'" in outcome.err and "its inputs are x" in outcome.err


def test_carbon_price_and_a_lifetime(joulemap):
    options = [
        "--steps",
        1000,
        "--inferences",
        50000,
        "--gco2-per-kwh",
        50,
        "--price-per-kwh",
        0.3,
        "--pue",
        1.5,
        "--json",
    ]
    result = joulemap("predict", RESNET, "--batch", 16, *options).json
    kwh = result["energy_j"] * 1.5 / 3.6e6
    assert result["co2_kg"] == pytest.approx(0.05 * kwh) and result["price"] == pytest.approx(0.3 * kwh)
    life = result["lifetime"]
    assert life["inference_j"] == pytest.approx(result["energy_j"])
    assert life["energy_j"] == pytest.approx(1000 * life["step_j"] + 50000 * life["inference_j"])
    assert life["low_j"] < life["energy_j"] < life["high_j"]
    text = joulemap("predict", RESNET).out
    assert "400 g/kWh" in text and "world average" in text and "GPU only" in text


def test_explain_shows_features_and_physics_of_a_layer(joulemap):
    result = joulemap("predict", RESNET, "--explain", "--json").json["explanation"]
    assert result["operations"]
    for operation in result["operations"]:
        assert {"flops", "bytes", "granted_s", "physical_s", "tree_factor", "trust", "features", "bound"} <= set(
            operation
        )
    layer_explanation = joulemap("predict", RESNET, "--explain", result["layer"], "--json").json["explanation"]
    assert layer_explanation == result
    text = joulemap("predict", "--explain", RESNET).out
    assert f"Explanation of {result['layer']}" in text and "weight" in text and "feature" in text


def test_top_limits_the_layers_of_the_text_alone(joulemap):
    text = joulemap("predict", RESNET, "--top", 3).out
    assert "more" in text and len(joulemap("predict", RESNET, "--top", 3, "--json").json["layers"]) > 3
    assert "and" not in [
        line.split()[0] for line in joulemap("predict", RESNET, "--top", 0).out.splitlines() if line.strip()
    ]


def test_output_goes_into_a_file(joulemap, tmp_path):
    file = tmp_path / "told.json"
    outcome = joulemap("predict", RESNET, "--json", "-o", file)
    assert outcome.code == 0 and outcome.out == ""
    assert json.loads(file.read_text())["schema"] == "joulemap.prediction/1"


@pytest.mark.parametrize(
    "name", ["torch.nn.Conv2d", "torch.nn.Linear", "torch.nn.functional.relu", "Dense", "Conv", "AdamW", "add"]
)
def test_a_card_has_joules_by_size_and_precision(joulemap, name):
    outcome = joulemap("operation", name, "--json")
    result = outcome.json
    assert outcome.code == 0 and result["schema"] == "joulemap.card/1" and result["name"] == name
    assert {row["precision"] for row in result["rows"]} >= {"fp32", "bf16"}
    assert len({row["size"] for row in result["rows"]}) >= 3 and result["advice"]
    assert all(
        row["energy_j"] > 0 and row["time_s"] > 0 and row["bound"] in ("launch", "memory", "compute")
        for row in result["rows"]
    )
    assert name in joulemap("operation", name).out


def test_an_unknown_card_lists_similar_names(joulemap):
    outcome = joulemap("operation", "torch.nn.Linaer")
    assert outcome.code == 2 and "Linear" in outcome.err
    assert joulemap("operation").code == 2
    assert joulemap("operation", "Linear", "--device", "abacus").code != 0


def test_model_verbs_report_missing_files(joulemap, tmp_path):
    for verb in (["fit", tmp_path, "-o", tmp_path / "p.json"], ["eval", tmp_path]):
        outcome = joulemap("model", *verb)
        assert outcome.code == 1 and "operations.csv" in outcome.err, outcome.err
    assert joulemap("model").code == 2
    assert joulemap("model", "fit", tmp_path).code == 2, "where to?"
    assert joulemap("predict", RESNET, "--profile", tmp_path / "none.json").code == 1


@pytest.fixture(scope="module")
def measured_folder(tmp_path_factory):
    """A folder with every 24th measured operation of the H200."""
    folder = tmp_path_factory.mktemp("measured")
    with gzip.open(ROOT / "data" / "h200" / "operations.csv.gz", "rt") as full_csv_file:
        lines = full_csv_file.read().splitlines()
    with gzip.open(folder / "operations.csv.gz", "wt") as part:
        part.write("\n".join([lines[0], *lines[1::24]]) + "\n")
    return folder


@pytest.mark.parametrize("learner", ["boosting", "forest", "linear", "none"])
def test_profiles_of_every_learner_predict(joulemap, measured_folder, tmp_path, learner):
    profile = tmp_path / "profile.json"
    fit_outcome = joulemap("model", "fit", measured_folder, "--learner", learner, "-o", profile)
    assert fit_outcome.code == 0, fit_outcome.err
    default_energy_j = joulemap("predict", RESNET, "--json").json["energy_j"]
    energy_j = joulemap("predict", RESNET, "--profile", profile, "--json").json["energy_j"]
    assert default_energy_j / 2 < energy_j < 2 * default_energy_j


def test_learners_are_compared_and_shown_on_a_page(joulemap, measured_folder, tmp_path):
    page, table = tmp_path / "evaluation.html", tmp_path / "evaluation.json"
    evaluation_outcome = joulemap(
        "model", "eval", measured_folder, "--folds", "2", "--compare-learners", "--html", page, "--json", "-o", table
    )
    assert evaluation_outcome.code == 0, evaluation_outcome.err
    learners = {
        learner_entry["learner"]: learner_entry["scores"] for learner_entry in json.loads(table.read_text())["learners"]
    }
    assert set(learners) == {"boosting", "forest", "linear", "none"}
    rmspe = {name: {row["name"]: row["rmspe"] for row in scores}["operations"] for name, scores in learners.items()}
    assert len({round(error, 6) for error in rmspe.values()}) == len(learners), "each learner was fitted"
    html = page.read_text()
    assert "<svg" in html and "forest" in html and "<script" not in html
    assert "no cases" in html and "no network settings were measured twice" in html
    assert joulemap("model", "eval", measured_folder, "--learner", "oracle").code == 2


def test_two_outputs_of_an_evaluation_must_not_be_one_file(joulemap, measured_folder, tmp_path):
    shared_output_file = tmp_path / "same"
    evaluation_outcome = joulemap(
        "model", "eval", measured_folder, "--html", shared_output_file, "-o", shared_output_file
    )
    assert evaluation_outcome.code == 2
    assert "two outputs have the name" in evaluation_outcome.err
    assert not shared_output_file.exists()


SIMULATED_PYTHON = """#!/bin/sh
# Only measuring can be simulated; writing the tables takes no such options.
case "$*" in *--tables*) exec {python} "$@" ;; esac
exec {python} "$@" --simulated --scale 0.02 --active 0.06
"""


def test_a_profile_of_this_machine_is_measured_fitted_and_then_used(joulemap, binaries, tmp_path):
    """Uses the collector's simulated GPU: this CPU with synthetic power."""
    pytest.importorskip("torch")
    python = tmp_path / "python"
    python.write_text(SIMULATED_PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    environment = {**os.environ, "JOULEMAP_DATA": str(tmp_path / "data"), "PYTHONPATH": str(binaries.parent / "python")}
    calibration_outcome = joulemap("calibrate", "--predict", "--minutes", "0.2", "--python", python, env=environment)
    assert calibration_outcome.code == 0, calibration_outcome.err
    device = calibration_outcome.out.rstrip().split('"')[-2]
    result = joulemap("predict", RESNET, "--device", device, "--json", env=environment).json
    assert result["basis"] == "fitted" and result["device"] == device and result["energy_j"] > 0


def test_a_python_without_the_package_is_reported(joulemap, tmp_path):
    environment = {**os.environ, "JOULEMAP_DATA": str(tmp_path / "data")}
    calibration_outcome = joulemap("calibrate", "--predict", "--python", "/bin/false", env=environment)
    assert calibration_outcome.code != 0 and "--python" in calibration_outcome.err


def test_a_device_on_the_command_line_overrides_the_profile_of_the_configuration(joulemap, tmp_path):
    (tmp_path / "joulemap.toml").write_text(f'profile = "{tmp_path / "none.profile"}"\n')
    environment = {**os.environ, "JOULEMAP_CONFIG": str(tmp_path / "joulemap.toml")}
    assert joulemap("predict", RESNET, env=environment).code == 1
    assert joulemap("predict", RESNET, "--device", "a100", env=environment).code == 0
