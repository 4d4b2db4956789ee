"""Every table of `report --html` and `diff --html`, cell by cell, against `--json`."""

from __future__ import annotations

import pytest
from page_numbers import FOUR_DIGIT_TOLERANCE, read_captions, assert_near, assert_near_share, parse_quantity, rows_of

LEVELS = {"layer": "Layers", "op": "Operations", "kernel": "Kernels", "tensor": "Tensors", "phase": "Phases"}
CAUSES = {"launch": "waiting for launches", "unknown": "idle: unknown cause"}
COMPONENT_NAMES = {"gpu": "GPU", "package": "CPU", "dram": "memory"}


def test_there_is_no_other_table_than_those_compared_here(opened):
    page = opened()
    chosen_step_title = page.inner_text("#steps h3")
    assert read_captions(page) == {
        "Energy by component",
        "Energy by domain",
        "Layers, sorted by Energy",
        "The largest parts",
        "Mean power by time",
        "Energy of layers per step",
        "loss against energy",
        "Energy, loss, and energy per unit of loss of each epoch",
        "Measurement overhead",
        f"{chosen_step_title}: layers",  # test_steps.py
        f"{chosen_step_title}: what the GPU waited for",
    }


def test_component_energies_are_sums_of_counted_domains(opened, report):
    rows = rows_of(opened(), "Energy by component")
    expected_component_sums: dict = {}
    for domain in report("domain")["domains"]:
        if domain["counted"]:
            name = COMPONENT_NAMES[domain["name"].split("-")[0].rstrip("0123456789")]
            sums = expected_component_sums.setdefault((name, domain["provenance"]), [0.0, 0.0])
            sums[0] += domain["measured_j"]
            sums[1] += domain["uncertainty_j"]
    assert {(row[0], row[3]) for row in rows} == set(expected_component_sums)
    for name, _, energy, provenance in rows:
        sum_j, uncertainty_j = expected_component_sums[name, provenance]
        assert_near(energy.split("±")[0], "J", sum_j)
        assert_near(energy.split("±")[1], "J", uncertainty_j, rel=0.06)  # two digits


def test_a_component_that_is_partly_estimated_has_a_row_for_each_provenance(opened, page_with_changed_data):
    def mark_cpu_as_estimated(data: dict) -> None:
        cpu = next(component for component in data["components"] if component["name"] == "CPU")
        cpu.update(measured_j=100.0, measured_uncertainty_j=1.0, estimated_j=900.0, estimated_uncertainty_j=90.0)

    file = page_with_changed_data(mark_cpu_as_estimated)
    rows = [row for row in rows_of(opened(file=file), "Energy by component") if row[0] == "CPU"]
    assert [row[3] for row in rows] == ["measured", "estimated"]
    assert_near(rows[0][2], "J", 100)
    assert_near(rows[1][2], "J", 900)


def test_the_uncertainty_of_the_total_comes_from_its_domains(opened, report):
    result = report("domain")
    total_uncertainty_j = sum(
        domain["uncertainty_j"]
        for domain in result["domains"]
        if domain["counted"] and domain["provenance"] == "measured"
    )
    assert_near(opened().inner_text(".hero-note").split("±")[1], "J", total_uncertainty_j, rel=0.06)


def test_domains_match_json(opened, report):
    rows = rows_of(opened(), "Energy by domain")
    domains = report("domain")["domains"]
    assert [row[0] for row in rows] == [domain["name"] for domain in domains]
    for row, domain in zip(rows, domains):
        assert_near(row[1], "J", domain["measured_j"], FOUR_DIGIT_TOLERANCE)
        assert_near(row[2], "J", domain["uncertainty_j"], rel=0.06)
        assert_near(row[3], "W", domain["mean_w"])
        assert row[4].startswith(domain["provenance"])
        assert row[5] == ("yes" if domain["counted"] else f"in {domain['part_of']}")


@pytest.mark.parametrize("by", LEVELS)
def test_every_column_of_a_level_matches_json(opened, report, by):
    page = opened()
    page.get_by_role("group", name="Level").get_by_text(LEVELS[by], exact=True).click()
    result = report(by)
    total_energy_j = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
    rows = rows_of(page, LEVELS[by])
    assert len(rows) == min(len(result["rows"]), 40)
    for cells, row in zip(rows, result["rows"]):
        _, device, energy, interval, per_step, share, power, time, count, waiting, cause, basis = cells
        assert (device, basis, cause) == (row["device"], row["basis"], row["cause"] or "")
        assert_near(energy, "J", row["energy_j"], FOUR_DIGIT_TOLERANCE)
        assert_near(per_step, "J", None if row["energy_j"] is None else row["energy_j"] / result["steps"])
        assert_near_share(share, None if row["energy_j"] is None else row["energy_j"] / total_energy_j)
        assert_near(power, "W", row["power_w"])
        assert_near(time, "s", row["time_s"])
        assert_near(waiting, "J", row["waiting_j"])
        assert count.replace("\u202f", "") == ("–" if row["count"] is None else str(row["count"]))
        if row["low_j"] is not None and row["energy_j"]:
            relative_half_width = (row["high_j"] - row["low_j"]) / 2 / row["energy_j"]
            assert parse_quantity(interval, "%") / 100 == pytest.approx(relative_half_width, abs=0.006)
    names, energies = (
        page.locator(f"#tables tfoot tr > :nth-child({column_number})").all_inner_texts() for column_number in (1, 3)
    )
    footer_energies = dict(zip(names, energies))
    assert_near(footer_energies["idle"], "J", result["idle_j"], FOUR_DIGIT_TOLERANCE)
    unattributed_j = parse_quantity(footer_energies["not attributed"], "J")
    assert unattributed_j == pytest.approx(
        result["unattributed_j"], rel=FOUR_DIGIT_TOLERANCE, abs=1e-6 * total_energy_j
    )


def test_the_largest_frames_of_the_flame_graph_match_the_first_rows_of_json(opened, report):
    result = report("stack")
    total_energy_j = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
    rows = rows_of(opened(), "The largest parts")
    assert len(rows) == 30
    for (path, energy, share, time), row in zip(rows, result["rows"]):
        assert path == " › ".join(row["path"])
        assert_near(energy, "J", row["energy_j"])
        assert_near_share(share, None if row["energy_j"] is None else row["energy_j"] / total_energy_j)
        assert_near(time, "s", row["time_s"])


def test_mean_powers_over_time_match_json(opened, report):
    result = report("domain")
    rows = rows_of(opened(), "Mean power by time")
    assert len(rows) == 24
    compared_cell_count = 0
    for column_index, series in enumerate(result["power"]["domains"], 1):
        slices_per_row = len(series["watts"]) // 24
        for number, row in enumerate(rows):
            row_powers_w = series["watts"][number * slices_per_row : (number + 1) * slices_per_row]
            if None not in row_powers_w:  # before the first reading the page's finer slices have more values
                assert_near(row[column_index], "W", sum(row_powers_w) / len(row_powers_w), rel=0.02)
                compared_cell_count += 1
    assert compared_cell_count >= 22 * len(result["power"]["domains"])


def test_spreads_of_layers_are_quantiles_of_their_steps(opened, exported):
    steps: dict = {}
    for line in exported("layer-step"):
        if line["per"] == "step":
            steps.setdefault(line["path"], []).append(float(line["energy_j"]))
    rows = rows_of(opened(), "Energy of layers per step")
    assert rows
    for path, sample_unit, samples, *quantiles in rows:
        values = sorted(steps[path])
        assert (sample_unit, int(samples)) == ("step", len(values))
        for share, text in zip((0.05, 0.25, 0.5, 0.75, 0.95), quantiles):
            lower_index = int(share * (len(values) - 1))
            part = share * (len(values) - 1) - lower_index
            assert_near(
                text, "J", (1 - part) * values[lower_index] + part * values[min(lower_index + 1, len(values) - 1)]
            )


def test_loss_against_energy_covers_the_whole_run(opened, report, exported):
    result = report("domain")
    loss = next(metric for metric in result["metrics"] if metric["name"] == "loss")
    rows = rows_of(opened(), "loss against energy")
    assert float(rows[0][3]) == pytest.approx(loss["first"], rel=FOUR_DIGIT_TOLERANCE)
    steps = {int(line["number"]): line for line in exported("step")}
    energy_outside_steps_j = result["measured_j"] - sum(float(line["energy_j"]) for line in steps.values())
    for step, time, energy, value in rows:
        line = steps[int(step)]
        assert float(value) == pytest.approx(float(line["loss"]), rel=FOUR_DIGIT_TOLERANCE)
        assert_near(time, "s", float(line["end_s"]), rel=0.05)  # logged before the pause that ends the step
        cumulative_j = sum(
            float(step_record["energy_j"]) for number, step_record in steps.items() if number <= int(step)
        )
        assert parse_quantity(energy, "J") == pytest.approx(
            cumulative_j + energy_outside_steps_j / 2, rel=0.02, abs=energy_outside_steps_j
        )


def test_every_column_of_the_epochs_matches_json(opened, report, exported):
    rows = rows_of(opened(), "Energy, loss")
    result = report("epoch")["rows"]
    lines = exported("epoch")
    assert len(rows) == len(result) == len(lines) == 4
    for (number, energy, _, time, power, loss, per_loss), row, line in zip(rows, result, lines):
        assert number == row["name"] == line["number"]
        assert_near(energy, "J", row["energy_j"])
        assert_near(time, "s", row["time_s"])
        assert_near(power, "W", row["power_w"])
        assert float(loss) == pytest.approx(float(line["loss"]), rel=FOUR_DIGIT_TOLERANCE)
        assert_near(per_loss, "J", float(line["joules_per_loss"]) if line["joules_per_loss"] else None)


def test_measurement_overhead_matches_json(opened, report):
    result = report("domain")
    cells = {row[0]: row[1:] for row in rows_of(opened(), "Measurement overhead")}
    overhead = result["overhead"]
    assert_near(cells["CPU time of the recorder"][0], "s", overhead["cpu_s"])
    assert_near_share(cells["CPU time of the recorder"][1], overhead["share"])
    assert (cells["Probing (replay of modules)"][0] == "none") == (overhead["probe_s"] is None)
    assert (cells["Dithering (pauses of the program)"][0] == "none") == (overhead["dither_s"] is None)
    assert int(cells["Sensor samples"][0].replace("\u202f", "")) == result["samples"]
    assert_near(cells["Recording size"][0], "B", result["file_bytes"])


def test_every_column_of_a_comparison_matches_json(opened, compared):
    file, result = compared
    page = opened(file=file)
    assert read_captions(page) == {"Differences, sorted by B − A", f"Active and waiting energy per {result['per']}"}
    run_fact_lines = [text.split("\n") for text in page.locator(".versus dl").all_inner_texts()]
    for side, lines in zip("ab", run_fact_lines):
        displayed_facts = dict(zip(lines[::2], lines[1::2]))
        assert_near(
            displayed_facts[f"energy per {result['per']}"], "J", result["total"][side]["energy_j"], FOUR_DIGIT_TOLERANCE
        )
        assert displayed_facts["provenance"] == result[side]["provenance"]
    rows = rows_of(page, "Differences")
    entries = sorted(result["entries"], key=lambda difference_entry: -abs(difference_entry["difference_j"] or 0))[
        : len(rows)
    ]
    assert len(rows) == min(len(result["entries"]), 60)
    for (_, device, a, b, difference, change, verdict), entry in zip(rows, entries):
        assert device == (entry["device"] or "")
        assert_near(a, "J", entry["a"] and entry["a"]["energy_j"], FOUR_DIGIT_TOLERANCE)
        assert_near(b, "J", entry["b"] and entry["b"]["energy_j"], FOUR_DIGIT_TOLERANCE)
        assert_near(difference.replace("+", ""), "J", entry["difference_j"])
        assert_near_share(change.replace("+", ""), entry["relative"])
        assert verdict.lower().replace(" the ", " ").replace(" ", "_") in (entry["verdict"], "not_known")


def test_active_and_waiting_energy_of_both_runs_matches_json(opened, compared):
    file, result = compared
    rows = rows_of(opened(file=file), "Active and waiting energy")
    causes: dict = {}
    for entry in result["idle"]:
        name = "idle CPUs" if entry["device"] == "cpu" else CAUSES[entry["cause"]]
        sums = causes.setdefault(name, [0.0, 0.0])
        sums[0] += entry["a_j"]
        sums[1] += entry["b_j"]
    idle_j = [sum(values[side] for values in causes.values()) for side in (0, 1)]
    total_j = [result["total"][side]["energy_j"] for side in "ab"]
    causes["active and not attributed"] = [total_j[0] - idle_j[0], total_j[1] - idle_j[1]]
    assert {row[0] for row in rows} == set(causes)
    for name, _, a, b, difference in rows:
        assert_near(a, "J", causes[name][0])
        assert_near(b, "J", causes[name][1])
        assert_near(difference.replace("+", ""), "J", causes[name][1] - causes[name][0])
