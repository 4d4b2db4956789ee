"""export: third-party readers can read its output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from made_training import LAYER_COUNT, STEPS, made, load_report  # noqa: F401  fixtures


@pytest.fixture
def run_folder(joulemap, made, tmp_path) -> Path:
    export_outcome = joulemap("export", made, "--to", "tensorboard", "-o", tmp_path / "runs" / "made")
    assert export_outcome.code == 0, export_outcome.err
    return tmp_path / "runs" / "made"


def read_tensorboard_events(folder: Path):
    """Reads all events with TensorBoard's own loader."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulators.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    return events.Reload()


def read_scalars(events, tag: str) -> dict[int, float]:
    return {event.step: event.value for event in events.Scalars(tag)}


def test_tensorboard_reads_energy_power_and_loss_of_every_step_and_epoch(run_folder, load_report):
    events = read_tensorboard_events(run_folder)
    for group, report_level, count in (("step", "step", STEPS), ("epoch", "epoch", 4)):
        energies = read_scalars(events, f"joulemap_{group}/energy_j")
        assert list(energies) == list(range(count))
        for row in load_report(report_level)["rows"]:
            assert energies[int(row["name"].split()[-1])] == pytest.approx(row["energy_j"], rel=1e-6)
        assert set(read_scalars(events, f"joulemap_{group}/loss")) == set(energies)
        assert len(read_scalars(events, f"joulemap_{group}/power_w")) == count
    final_cumulative_j = list(read_scalars(events, "joulemap_step/energy_so_far_j").values())[-1]
    assert final_cumulative_j == pytest.approx(sum(read_scalars(events, "joulemap_step/energy_j").values()), rel=1e-5)
    energies, losses = read_scalars(events, "joulemap_epoch/energy_j"), read_scalars(events, "joulemap_epoch/loss")
    per_loss = read_scalars(events, "joulemap_epoch/joules_per_loss")
    assert per_loss == {i: pytest.approx(energies[i] / (losses[i - 1] - losses[i]), rel=1e-4) for i in (1, 2, 3)}


def test_tensorboard_reads_each_layer_forward_and_backward(run_folder):
    events = read_tensorboard_events(run_folder)
    for phase in ("forward", "backward"):
        for layer in ("</script><b>bold</b>", *(f"blocks.{i // 4}.conv{i % 4}" for i in range(1, LAYER_COUNT))):
            tag = f"joulemap_gpu0_train_{phase}/{layer}"
            assert list(read_scalars(events, tag)) == list(range(STEPS))
            histogram_events = events.Tensors(tag + "/spread")
            assert sum(sum_bucket_counts(event) for event in histogram_events) == STEPS
    plugin = events.SummaryMetadata("joulemap_gpu0_train_forward/blocks.1.conv1/spread").plugin_data.plugin_name
    assert plugin == "histograms"


def test_tensorboard_reads_each_whole_pass_and_shows_all_layers_of_a_pass_in_one_chart(run_folder, load_report):
    import re

    from tensorboard.plugins.custom_scalar import layout_pb2

    events = read_tensorboard_events(run_folder)
    by_phase = {
        " ".join(row["path"]): row["energy_j"] for row in load_report("phase")["rows"] if row["device"] == "gpu0"
    }
    for phase in ("forward", "backward"):
        energies = read_scalars(events, f"joulemap_pass/gpu0 train {phase}")
        assert list(energies) == list(range(STEPS))
        assert sum(energies.values()) == pytest.approx(by_phase[f"train {phase}"], rel=0.05)
    (config,) = events.Tensors("custom_scalars__config__")
    layout = layout_pb2.Layout.FromString(config.tensor_proto.string_val[0])
    (category,) = layout.category
    tags = {
        chart.title: [tag for tag in events.Tags()["scalars"] if re.match(chart.multiline.tag[0], tag)]
        for chart in category.chart
    }
    assert len(tags["energy of each pass in a step, J"]) >= 2
    assert len(tags["energy of each layer in a step, J: gpu0 train forward"]) == LAYER_COUNT


def sum_bucket_counts(event) -> float:
    from tensorboard.util import tensor_util

    buckets = tensor_util.make_ndarray(event.tensor_proto)
    assert buckets.shape[1] == 3 and (buckets[:, 0] <= buckets[:, 1]).all()
    return buckets[:, 2].sum()


def test_power_over_time_keeps_the_energy(run_folder, load_report):
    events = read_tensorboard_events(run_folder).Scalars("joulemap_power/gpu0_w")
    times = [event.wall_time for event in events]
    slices = [end_s - begin_s for begin_s, end_s in zip(times, times[1:])]
    domain = next(domain for domain in load_report("domain")["domains"] if domain["name"] == "gpu0")
    shown_j = sum(event.value for event in events) * sum(slices) / len(slices)
    # Slices after the last reading have no power; their energy is part of the uncertainty.
    assert shown_j == pytest.approx(domain["measured_j"], abs=domain["uncertainty_j"])


def test_tensorboard_reads_the_summary_and_the_hparams(run_folder, load_report):
    events = read_tensorboard_events(run_folder)
    text = events.Tensors("joulemap_summary/run")[0].tensor_proto.string_val[0].decode()
    assert "&lt;/script>" in text.replace("\\", "") and "</script>" not in text
    assert "gpu0" in text and "it was made up" in text
    from tensorboard.plugins.hparams import metadata

    def content(tag: str) -> bytes:
        return events.SummaryMetadata(tag).plugin_data.content

    start = metadata.parse_session_start_info_plugin_data(content("_hparams_/session_start_info"))
    assert start.hparams["name"].string_value == '<made & "up">'
    assert start.hparams["joulemap host"].string_value == "made-up"
    assert metadata.parse_session_end_info_plugin_data(content("_hparams_/session_end_info")).status == 1
    experiment = metadata.parse_experiment_plugin_data(content("_hparams_/experiment"))
    metrics = {info.name.tag for info in experiment.metric_infos}
    assert "joulemap_run/joules_per_step" in metrics and metrics <= set(events.Tags()["scalars"])
    per_step = read_scalars(events, "joulemap_run/joules_per_step")[0]
    layer_report = load_report("layer")
    command_j = layer_report["measured_j"] - sum(
        row["energy_j"] for row in layer_report["rows"] if row["path"] == ["background"]
    )
    assert command_j < 0.95 * layer_report["measured_j"]
    assert per_step == pytest.approx(command_j / STEPS, rel=1e-6)
    assert read_scalars(events, "joulemap_run/command_energy_j")[0] == pytest.approx(command_j, rel=1e-6)


def test_tensorboard_export_keeps_existing_event_files(joulemap, made, tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss/train", 3.0 - step, step)
    original_files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for _ in range(2):
        assert joulemap("export", made, "--to", "tensorboard", "-o", tmp_path).code == 0
    assert len(list(tmp_path.iterdir())) == 3
    assert all(file.read_bytes() == content for file, content in original_files.items())
    events = read_tensorboard_events(tmp_path)
    assert read_scalars(events, "loss/train") == {0: 3.0, 1: 2.0, 2: 1.0}
    assert len(read_scalars(events, "joulemap_step/energy_j")) == STEPS
    assert "_hparams_/experiment" not in events.Tags()["tensors"]


def test_tensorboard_needs_a_folder(joulemap, made, tmp_path):
    export_outcome = joulemap("export", made, "--to", "tensorboard")
    assert export_outcome.code == 2 and "-o runs/" in export_outcome.err
    (tmp_path / "file").write_text("mine")
    export_outcome = joulemap("export", made, "--to", "tensorboard", "-o", tmp_path / "file")
    assert export_outcome.code == 1 and str(tmp_path / "file") in export_outcome.err
    assert (tmp_path / "file").read_text() == "mine"


def test_parquet_without_pyarrow_says_what_to_install(joulemap, made, tmp_path):
    """tests/integrations has the test with pyarrow."""
    code = "import sys; sys.modules['pyarrow'] = None; exec(sys.argv[1])"
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{code}" "$@"\n')
    fake.chmod(0o755)
    environment = {**os.environ, "JOULEMAP_PYTHON": str(fake)}
    export_outcome = joulemap("export", made, "--to", "parquet", "-o", tmp_path / "run.parquet", env=environment)
    assert export_outcome.code == 77 and "pip install pyarrow" in export_outcome.err
    assert joulemap("export", made, "--to", "parquet").code == 2


def test_unreadable_input_is_an_error_and_leaves_no_event_file(joulemap, tmp_path):
    export_outcome = joulemap("export", tmp_path / "none.joule", "--to", "tensorboard", "-o", tmp_path / "run")
    assert export_outcome.code == 1 and "none.joule" in export_outcome.err
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(
    ("form", "by", "message"),
    [
        ("sqlite", "layer", "sqlite has no levels to choose: --by does not apply"),
        ("tensorboard", "kernel", "tensorboard has no levels to choose: --by does not apply"),
        ("folded", "step", "folded contains stacks, and --by step has none"),
    ],
)
def test_a_level_that_a_format_does_not_contain_is_an_error(joulemap, made, tmp_path, form, by, message):
    export_outcome = joulemap("export", made, "--to", form, "--by", by, "-o", tmp_path / "out")
    assert export_outcome.code == 2
    assert message in export_outcome.err
    assert not (tmp_path / "out").exists()
