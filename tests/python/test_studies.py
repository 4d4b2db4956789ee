"""Studies of bench/h200: their results from recordings, and that their loads run without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
H200_BENCH_FOLDER = ROOT / "bench" / "h200"
sys.path.append(str(H200_BENCH_FOLDER))

import additivity  # noqa: E402
import fashion_study  # noqa: E402
import held_out  # noqa: E402
import transformer_parts as parts  # noqa: E402
import transformers_study  # noqa: E402
from findings import RESULTS_BEGIN, RESULTS_END, Findings  # noqa: E402
from recordings import EnergyUse  # noqa: E402
from study_statistics import CONFIRMED, NOT_SHOWN, REFUTED, Interval  # noqa: E402


@pytest.mark.parametrize(
    "path, part",
    [
        ("train forward bert.encoder.layer.0.attention.self.query", parts.ATTENTION_PART),
        ("train backward bert.encoder.layer.11.attention.output.LayerNorm", parts.ATTENTION_PART),
        ("train forward bert.encoder.layer.3.intermediate.dense", parts.FEED_FORWARD_PART),
        ("train forward bert.encoder.layer.3.output.dropout", parts.FEED_FORWARD_PART),
        ("train forward albert.encoder.albert_layer_groups.0.albert_layers.0.attention.dense", parts.ATTENTION_PART),
        ("train forward albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output", parts.FEED_FORWARD_PART),
        ("train forward albert.encoder.albert_layer_groups.0.albert_layers.0", parts.FEED_FORWARD_PART),
        ("train forward albert.encoder.embedding_hidden_mapping_in", parts.EMBEDDING_PART),
        ("train backward bert.embeddings.word_embeddings", parts.EMBEDDING_PART),
        ("inference forward bert.pooler.dense", parts.POOLER_PART),
        ("train forward cls.predictions.decoder", parts.HEAD_PART),
        ("train forward sop_classifier.classifier", parts.HEAD_PART),
        ("train loss", parts.HEAD_PART),
        ("train optimizer AdamW", parts.UPDATE_PART),
        ("train zero_grad", parts.UPDATE_PART),
        ("train backward", parts.OTHER_PARTS),
        ("train forward bert", parts.OTHER_PARTS),
        ("setup", parts.OTHER_PARTS),
    ],
)
def test_every_layer_of_bert_and_albert_has_its_part(path, part):
    assert parts.transformer_part_of(path.split()) == part


def case(model: str = "BERT", task: str = "pre-training", attention_j: float = 1.0, spread: float = 0.1):
    interval_around = lambda joules: Interval(joules, joules * (1 - spread), joules * (1 + spread))  # noqa: E731
    part_energies = {
        parts.ATTENTION_PART: interval_around(attention_j),
        parts.FEED_FORWARD_PART: interval_around(2.0),
        parts.EMBEDDING_PART: interval_around(0.01),
    }
    phases = {"forward": interval_around(1.0), "backward": interval_around(2.0)}
    step = EnergyUse(310.0, 3.0, 1.0)
    return transformers_study.TaskCase(
        model, task, "fp32", step, 100, interval_around(1.0), part_energies, {}, phases, []
    )


def result(write_section, *arguments) -> str:
    findings = Findings()
    write_section(findings, *arguments)
    return "\n".join(findings.lines)


def test_claims_about_transformers_follow_the_intervals():
    cases = [case(), case("ALBERT", attention_j=0.4)]
    assert f"backward pass dominates: {CONFIRMED}" in result(transformers_study.write_backward, cases)
    assert f"same layers: {REFUTED}" in result(transformers_study.write_attention, cases)
    albert = result(transformers_study.write_albert, cases)
    assert f"energy): {CONFIRMED}**: self-attention (pre-training)." in albert
    uncertain_cases = [case(spread=0.6), case("ALBERT", attention_j=0.4, spread=0.6)]
    assert f"backward pass dominates: {NOT_SHOWN}" in result(transformers_study.write_backward, uncertain_cases)
    assert f"energy): {NOT_SHOWN}**." in result(transformers_study.write_albert, uncertain_cases)


def network(whole_j: float, layers_j: float, name: str = "net", multiplications: int = 10**9) -> additivity.Network:
    rounds = [0.99, 1.0, 1.01]
    joules = {
        additivity.WHOLE_VARIANT: [whole_j * round_factor for round_factor in rounds],
        additivity.LAYERS_VARIANT: [layers_j * round_factor for round_factor in rounds],
    }
    seconds = {additivity.WHOLE_VARIANT: [0.001] * 3, additivity.LAYERS_VARIANT: [0.002] * 3}
    return additivity.Network(name, 1, multiplications, 10, 100.0, joules, seconds)


def test_additivity_factor_with_and_without_idle_power():
    measured_network = network(whole_j=0.5, layers_j=0.4)
    assert measured_network.factor(additivity.LAYERS_VARIANT).value == pytest.approx(1.25)
    assert measured_network.factor(additivity.LAYERS_VARIANT, subtracts_idle=True).value == pytest.approx(
        (0.5 - 0.1) / (0.4 - 0.2), rel=1e-3
    )
    assert measured_network.factor(additivity.BLOCKS_VARIANT) is None


def test_factors_that_approach_one_with_size_are_reported():
    sizes = [10**power for power in (6, 7, 8, 9, 10)]
    converging_networks = [network(1.0, 1 / (2.1 - 0.2 * i), str(i), size) for i, size in enumerate(sizes)]
    assert f"larger networks: {CONFIRMED}" in result(additivity.write_verdicts, converging_networks)
    equal_factor_networks = [network(1.0 + 0.02 * (i % 2), 1.0, str(i), size) for i, size in enumerate(sizes)]
    assert f"larger networks: {NOT_SHOWN}" in result(additivity.write_verdicts, equal_factor_networks)
    assert f"within 10 %**: 5 {CONFIRMED} of 5" in result(additivity.write_verdicts, equal_factor_networks)


def epoch(number: int, joules: float, **more) -> fashion_study.Epoch:
    epoch_fields = {"loss": 2.3 / (1 + number), "steps": 100, "seconds": 0.5, "loading_s": 0.05, "clock_mhz": 1980.0}
    return fashion_study.Epoch(**{"number": number, "joules": joules, "temperature_c": 40.0, **epoch_fields, **more})


def deterministic_noise(number: int) -> float:
    """Deterministic noise without a trend."""
    return 0.3 * ((number * 7919) % 17 - 8) / 8


def test_a_fall_of_energy_and_its_absence_are_both_reported():
    falling = [epoch(i, 100 - 0.1 * i + deterministic_noise(i)) for i in range(100)]
    trend = fashion_study.mann_kendall_trend([epoch_record.step_j for epoch_record in falling])
    assert f'towards the end": {CONFIRMED}' in result(fashion_study.write_verdict, trend)
    level = [epoch(i, 100 + deterministic_noise(i)) for i in range(100)]
    trend = fashion_study.mann_kendall_trend([epoch_record.step_j for epoch_record in level])
    assert f'towards the end": {NOT_SHOWN}' in result(fashion_study.write_verdict, trend)


def test_a_fall_that_does_not_recur_with_fresh_weights_is_caused_by_the_machine():
    falling = [epoch(i, 100 - 0.1 * i) for i in range(100)]
    flat_repetition_epochs = [epoch(i, 90 + deterministic_noise(i)) for i in range(100)]
    assert "it is the machine's" in result(
        fashion_study.write_warm_repetition, falling, flat_repetition_epochs, CONFIRMED
    )
    falling_repetition_epochs = [epoch(i, 100 - 0.1 * i + deterministic_noise(i)) for i in range(50)]
    assert "it is the training's own" in result(
        fashion_study.write_warm_repetition, falling, falling_repetition_epochs, CONFIRMED
    )


def test_power_correlated_with_temperature_is_explained_by_it():
    warming_epochs = [epoch(i, 100 + i * 0.1 + deterministic_noise(i), temperature_c=40 + 0.05 * i) for i in range(60)]
    slopes = fashion_study.fit_power_by_gauges(warming_epochs)
    assert list(slopes) == ["temperature"]
    assert slopes["temperature"].value == pytest.approx(0.1 / 0.5 / 0.05, rel=0.2)


def test_predictions_are_evaluated_by_error_and_coverage():
    interval = {
        "measured_j": 100.0,
        "predicted_j": 101.0,
        "low_j": 98.0,
        "high_j": 104.0,
        "by_time_j": 90.0,
        "held_j": 50.0,
    }
    lines = result(held_out.write_load_section, "varied", [interval] * 20)
    assert "| regress | 1.00%" in lines and "| hold | 50.00%" in lines
    assert "hold 100.0% of 20" in lines
    assert f"better than `by time`: **{CONFIRMED}**" in lines


def test_findings_replace_the_results_section_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{RESULTS_BEGIN}\n\nNot yet run.\n\n{RESULTS_END}\n\nThe end.\n")
    findings = Findings()
    findings.add_line("It is 42.")
    findings.keep(page)
    assert page.read_text() == f"# Title\n\n{RESULTS_BEGIN}\n\nIt is 42.\n\n{RESULTS_END}\n\nThe end.\n"


STUDY_COMMANDS = {
    "additivity": ["additivity.py", "--window-s", "0.05", "--rounds", "2"],
    "fashion": ["fashion_study.py", "--images", "320", "--epochs", "14", "--again", "9"],
}


@pytest.mark.parametrize("name", STUDY_COMMANDS)
def test_a_study_is_collected_and_analysed_without_a_gpu(name, tmp_path, binaries):
    pytest.importorskip("torch")
    script, *arguments = STUDY_COMMANDS[name]
    command = [sys.executable, str(H200_BENCH_FOLDER / script), *arguments, "--joulemap", str(binaries / "joulemap")]
    command += ["--folder", str(tmp_path), "--device", "cpu", "--collect", "--seconds", "60"]
    command += ["--markdown", str(tmp_path / "page.md")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "Missed: nothing" in (tmp_path / "page.md").read_text()
    assert json.loads((tmp_path / f"{name}.json").read_text())["failed"] == []


def test_trainings_with_held_out_halves_are_collected_without_a_gpu(tmp_path, binaries):
    pytest.importorskip("torch")
    command = [
        sys.executable,
        str(H200_BENCH_FOLDER / "held_out.py"),
        "--joulemap",
        str(binaries / "joulemap"),
        "--folder",
        str(tmp_path),
    ]
    command += ["--device", "cpu", "--collect-only", "--seconds", "16"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    entries = json.loads((tmp_path / "held-out.json").read_text())["entries"]
    assert entries[0]["load"] == "steady" and entries[0]["passes"] > 0


def test_a_load_out_of_time_keeps_its_measurements(tmp_path, binaries):
    pytest.importorskip("torch")
    command = [
        sys.executable,
        str(H200_BENCH_FOLDER / "fashion_study.py"),
        "--images",
        "640",
        "--epochs",
        "100000",
        "--device",
        "cpu",
    ]
    command += ["--joulemap", str(binaries / "joulemap"), "--folder", str(tmp_path), "--collect-only", "--seconds", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert all(entry["run"] == "rest" for entry in json.loads((tmp_path / "fashion.json").read_text())["entries"])
