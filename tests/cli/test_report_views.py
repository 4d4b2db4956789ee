"""report for people and documents: tree, plots, tables, citation, model card. Uses a real recording of an H200."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
PLOTS = ["timeline", "violin", "box", "bars", "loss", "flame", "heatmap"]


@pytest.fixture
def report(joulemap):
    def run(*arguments: object, **environment: str):
        settings = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
        settings.pop("COLUMNS", None) if "COLUMNS" not in environment else None
        return joulemap("report", RECORDING, "--mode", "integral", *arguments, env=settings)  # 10 times faster

    return run


def parse_number(text: str) -> float:
    return float(re.sub("[^0-9.e+-]", "", text))


def test_the_tree_contains_the_numbers_of_the_json(report):
    result = report("--by", "layer", "--json").json
    lines = report("--by", "layer").out.splitlines()
    on_gpu = [row for row in result["rows"] if row["device"] == "gpu0"]
    phase = sum(row["energy_j"] for row in on_gpu if row["path"][:2] == ["train", "backward"])
    line = next(line for line in lines if "backward" in line)
    assert float(line.split("backward")[1].split()[0]) == pytest.approx(phase, rel=1e-3)
    idle = next(line for line in lines if line.startswith(" idle"))
    assert float(idle.split()[1]) == pytest.approx(result["idle_j"], rel=1e-3)
    assert any(line.startswith(" not attributed") for line in lines)
    assert any(line.startswith(" cpu") and "?" in line for line in lines), "an energy that is not known is no zero"


@pytest.mark.parametrize("columns", [60, 80, 132])
@pytest.mark.parametrize("by", ["layer", "kernel", "step"])
def test_text_fits_the_columns_it_is_given(report, by, columns):
    text = report("--by", by, COLUMNS=str(columns)).out
    tree = text[text.index(" By ") : text.index(" Power over")]
    assert max(len(line) for line in tree.splitlines()) <= columns


def test_report_in_a_pipe_has_80_columns_and_no_colour(report):
    text = report("--by", "layer").out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_report_without_utf8_is_ascii(report):
    assert report("--by", "layer", LC_ALL="C").out.isascii()


def run_in_terminal(binaries: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    main, side = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "90", **environment}
    command = [str(binaries / "joulemap"), "report", str(RECORDING), *arguments]
    process = subprocess.Popen(command, stdout=side, env=settings)
    os.close(side)
    text = b""
    while True:
        try:
            output_chunk = os.read(main, 65536)
        except OSError:
            break
        if not output_chunk:
            break
        text += output_chunk
    code = process.wait()
    os.close(main)
    return code, text.decode()


def test_a_terminal_has_colour_unless_it_wants_none(binaries):
    assert "\x1b[" in run_in_terminal(binaries)[1]
    assert "\x1b" not in run_in_terminal(binaries, NO_COLOR="1")[1]
    assert "\x1b" not in run_in_terminal(binaries, TERM="dumb")[1]


def test_plots_are_not_printed_to_a_terminal(binaries):
    assert run_in_terminal(binaries, "--plot", "bars") == (2, "")


def test_a_filter_keeps_only_matching_entries(report):
    text = report("--by", "layer", "--filter", "downsample", "--top", 0).out
    tree = text[text.index(" By ") : text.index("\n idle") + 1]
    assert "downsample" in tree and "maxpool" not in tree and "probe" not in tree.split("\n", 1)[1].split("±")[0]


def test_depth_and_top_bound_the_lines(report):
    def lines(*arguments: object) -> int:
        text = report("--by", "layer", *arguments).out
        return text[text.index(" By ") : text.index("\n idle") + 1].count("\n") - 1

    assert lines("--top", 5) <= 5
    assert lines("--depth", 1) == 2, "devices"
    assert lines("--top", 0) > 300


def test_an_unknown_sort_key_is_wrong_usage(report):
    assert report("--sort", "colour").code == 2


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_is_an_image_with_labels(report, tmp_path, plot):
    file = tmp_path / "plot.svg"
    assert report("--plot", plot, "-o", file).code == 0
    root = ElementTree.fromstring(file.read_text())
    assert root.tag.endswith("svg")
    texts = " ".join(element.text or "" for element in root.iter())
    assert "measured (nvml)" in texts and "Recording" in texts
    assert not re.search("href|<script|url\\(", file.read_text())
    piped_svg = report("--plot", plot).out
    assert piped_svg == file.read_text(), "to a pipe, the same bytes"


@pytest.mark.parametrize("plot", ["violin", "box", "lines"])
def test_plots_of_steps_are_of_phases_where_that_is_asked_for(report, tmp_path, plot):
    texts = {}
    for report_level in ("layer", "phase"):
        assert report("--plot", plot, "--by", report_level, "-o", tmp_path / f"{report_level}.svg").code == 0
        root = ElementTree.fromstring((tmp_path / f"{report_level}.svg").read_text())
        texts[report_level] = " ".join(element.text or "" for element in root.iter())
    assert "Energy of phases" in texts["phase"] and "Energy of layers" in texts["layer"]
    assert "train backward" in texts["phase"] and ".0." not in texts["phase"] and ".0." in texts["layer"]


@pytest.mark.parametrize(
    ("plot", "by"), [("violin", "op"), ("lines", "kernel"), ("box", "step"), ("timeline", "phase")]
)
def test_a_level_that_a_plot_does_not_have_is_wrong_usage(report, tmp_path, plot, by):
    outcome = report("--plot", plot, "--by", by, "-o", tmp_path / "x.svg")
    assert outcome.code == 2 and "--by" in outcome.err
    assert not (tmp_path / "x.svg").exists()


def test_bars_show_the_quantity_that_they_are_sorted_by(report, tmp_path):
    pictures = {}
    for sort in ("energy", "power", "time", "count", "name"):
        assert report("--plot", "bars", "--sort", sort, "-o", tmp_path / "x.svg").code == 0
        pictures[sort] = (tmp_path / "x.svg").read_text()
    assert len(set(pictures.values())) == 5
    rows = [
        row for row in report("--by", "layer", "--json").json["rows"] if row["energy_j"] and row["path"][0] != "probe"
    ]
    highest_power_row = max(rows, key=lambda row: row["energy_j"] / row["time_s"])
    titles = re.findall(r"<title>([^<]*): ([0-9.e]+) W", pictures["power"])
    assert titles[0][0].endswith(" ".join(highest_power_row["path"]))
    assert float(titles[0][1]) == pytest.approx(highest_power_row["energy_j"] / highest_power_row["time_s"], rel=1e-3)
    assert report("--plot", "violin", "--sort", "power", "-o", tmp_path / "x.svg").code == 2


def test_an_empty_plot_is_reported(joulemap, tmp_path):
    recording = RECORDING.parents[1] / "tests" / "data" / "recordings" / "v1.0.joule"
    outcome = joulemap("report", recording, "--plot", "violin", "-o", tmp_path / "x.svg")
    assert outcome.code == 1 and "->" in outcome.err
    assert not (tmp_path / "x.svg").exists()


def test_other_kinds_of_pictures_need_another_program(report, tmp_path):
    outcome = report("--plot", "bars", "-o", tmp_path / "x.png", PATH="/nonexistent")
    assert outcome.code == 77 and "librsvg2-bin" in outcome.err
    assert report("--plot", "bars", "-o", tmp_path / "x.jpg").code == 2


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="rsvg-convert is not installed")
@pytest.mark.parametrize(("kind", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_plots_are_converted_to_png_and_pdf(report, tmp_path, kind, magic):
    file = tmp_path / f"plot.{kind}"
    assert report("--plot", "bars", "-o", file).code == 0
    assert file.read_bytes().startswith(magic)


def test_a_table_of_csv_has_all_rows_with_all_digits(report):
    result = report("--by", "layer", "--json").json
    rows = list(csv.DictReader(io.StringIO(report("--by", "layer", "--format", "csv").out)))
    assert len(rows) == len(result["rows"]) + 2, "idle and unattributed energy, too"
    energy_by_layer = {(row["layer"], row["device"]): row["energy_j"] for row in rows}
    for row in result["rows"]:
        energy = energy_by_layer[" ".join(row["path"]), row["device"]]
        assert energy == "" if row["energy_j"] is None else float(energy) == row["energy_j"]


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_tables_for_documents_name_what_was_measured(report, form):
    text = report("--by", "layer", "--format", form).out
    assert "gpu0 by nvml" in text and "idle" in text


def test_the_citation_sentence_states_what_the_number_includes(report):
    text = report("--cite").out
    result = report("--json").json
    joules = result["measured_j"] - result["overhead"]["probe_j"]
    assert float(re.search(r"used ([\d.]+) J", text)[1]) == pytest.approx(joules, rel=1e-3)
    assert "measured: gpu0 by nvml" in text and "not included: package-0, dram-0" in text and "90 % interval" in text
    assert "on unidentified GPU, Intel" in text  # the recording predates the storage of GPU names
    assert "on one NVIDIA H200 with PyTorch" in report("--cite", "--hardware", "one NVIDIA H200").out


def test_a_model_card_has_emissions_only_with_carbon_intensity(report):
    result = report("--json").json
    joules = result["measured_j"] - result["overhead"]["probe_j"]
    card = report("--model-card", "--gco2-per-kwh", 300, "--location", "Paris", "--hardware", "1 x H200").out
    assert float(re.search(r"emissions: ([\d.]+)", card)[1]) == pytest.approx(joules / 3.6e6 * 300, rel=1e-3)
    assert 'geographical_location: "Paris"' in card and 'hardware_used: "1 x H200"' in card
    assert "\n  emissions:" not in report("--model-card").out
    assert "at 300 g/kWh" in report("--gco2-per-kwh", 300).out


def test_two_outputs_at_once_are_wrong_usage(report):
    assert report("--json", "--cite").code == 2
    assert report("--plot", "bars", "--format", "csv").code == 2
