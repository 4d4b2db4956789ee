"""report --html in a browser: clicks, zoom, search and sorting work, and its numbers match --json."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from page_numbers import parse_quantity

RECORDINGS = Path(__file__).resolve().parent.parent / "data" / "recordings"


def column(page, key: str) -> list[str]:
    heads = page.eval_on_selector_all("#tables thead th", "heads => heads.map(head => head.dataset.key)")
    return page.locator(f"#tables tbody tr > :nth-child({heads.index(key) + 1})").all_inner_texts()


def names(page) -> list[str]:
    """Full names of the rows, even where the page truncates them."""
    titles = page.eval_on_selector_all("#tables tbody th", "cells => cells.map(cell => cell.title)")
    return [title.replace(" › ", " ") for title in titles]


def test_the_summary_matches_json(opened, report):
    page = opened()
    result = report("layer")
    assert parse_quantity(page.inner_text(".hero"), "J") == pytest.approx(result["measured_j"], rel=1e-3)
    command_j = result["measured_j"] - sum(row["energy_j"] for row in result["rows"] if row["path"] == ["background"])
    figures = dict(zip(page.locator(".figure dt").all_inner_texts(), page.locator(".figure dd").all_inner_texts()))
    assert parse_quantity(figures["by the command"], "J") == pytest.approx(command_j, rel=5e-3)
    assert parse_quantity(figures["per step"], "J") == pytest.approx(command_j / 120, rel=5e-3)
    assert parse_quantity(figures["per epoch"], "J") == pytest.approx(command_j / 4, rel=5e-3)
    assert parse_quantity(figures["per sample"], "J") == pytest.approx(command_j / (120 * 32), rel=5e-3)
    assert parse_quantity(figures["samples per second"], "/s") == pytest.approx(
        120 * 32 / result["elapsed_s"], rel=5e-3
    )
    energy_delay_product = command_j * result["elapsed_s"]
    assert parse_quantity(figures["energy-delay product"], "J·s") == pytest.approx(energy_delay_product, rel=5e-3)
    components = page.locator(".components tbody tr").all_inner_texts()
    assert [text.split()[0] for text in components] == ["GPU", "CPU", "memory"]


@pytest.mark.parametrize(("by", "title"), [("layer", "Layers"), ("op", "Operations"), ("kernel", "Kernels")])
def test_tables_contain_the_rows_of_json_with_their_intervals(opened, report, by, title):
    page = opened()
    page.get_by_role("group", name="Level").get_by_text(title).click()
    rows = report(by)["rows"][:20]
    for row, energy, interval, name in zip(rows, column(page, "energy_j"), column(page, "interval"), names(page)):
        assert name == " ".join(row["path"])
        if row["energy_j"] is not None:
            assert parse_quantity(energy, "J") == pytest.approx(row["energy_j"], rel=1e-3)
        if row["low_j"] is not None and row["energy_j"]:
            relative_half_width = (row["high_j"] - row["low_j"]) / 2 / row["energy_j"]
            assert parse_quantity(interval, "%") / 100 == pytest.approx(relative_half_width, abs=0.006)
    causes = [row["cause"] or "" for row in rows]
    assert any(causes) and column(page, "cause")[: len(rows)] == causes


def test_column_heads_sort_both_ways_and_show_the_direction(opened):
    page = opened()
    heads = page.locator("#tables th[data-key=time_s]")
    heads.locator("button").click()
    assert heads.get_attribute("aria-sort") == "descending"
    falling = [parse_quantity(text, "s") for text in column(page, "time_s")]
    assert falling == sorted(falling, reverse=True)
    page.keyboard.press("Enter")  # the column header keeps the focus
    assert heads.get_attribute("aria-sort") == "ascending"
    ascending_times_s = [parse_quantity(text, "s") for text in column(page, "time_s")]
    assert ascending_times_s == sorted(ascending_times_s) and ascending_times_s[0] < falling[0]


def test_a_filter_leaves_rows_with_all_its_words_and_adds_them_up(opened, report):
    page = opened()
    page.get_by_label("Filter rows").fill("backward conv3")
    matching_rows = [row for row in report("layer")["rows"] if "backward" in row["path"] and "conv3" in row["path"][-1]]
    status = page.inner_text("#tables .found")
    assert len(names(page)) == len(matching_rows) == int(status.split()[0])
    assert all("backward" in name and "conv3" in name for name in names(page))
    assert parse_quantity(status, "J") == pytest.approx(sum(row["energy_j"] or 0 for row in matching_rows), rel=5e-3)


def test_hidden_rows_are_summed_and_can_be_shown(opened, report):
    page = opened()
    rows = report("layer")["rows"]
    footer_text = page.locator("#tables tfoot tr").first.inner_text()
    assert f"and {len(rows) - 40} more" in footer_text
    hidden_rows_j = sum(row["energy_j"] or 0 for row in rows[40:])
    assert parse_quantity(footer_text.split("more")[1], "J") == pytest.approx(hidden_rows_j, rel=1e-3)
    page.locator("#tables .more").click()
    assert len(names(page)) == min(len(rows), 240)


def test_every_view_shows_idle_unattributed_background_and_notes(opened, report):
    page = opened()
    result = report("phase")
    for view_id in ("summary", "flame", "steps", "timeline", "tables", "violins", "loss", "cost"):
        line = page.inner_text(f"#{view_id} .ledger-line")
        assert parse_quantity(line.split("idle")[1], "J") == pytest.approx(result["idle_j"], rel=6e-3), view_id
        assert "not attributed" in line and "background" in line and "on the data" in line, view_id
    assert "nothing of this ever ran: <i>it was made up</i>" in page.inner_text("#notes")


def test_the_flame_graph_zooms_searches_and_changes_its_measure(opened, report):
    page = opened()
    result = report("stack")
    frames = page.locator(".frame")
    root_label = frames.first.get_attribute("aria-label")
    assert parse_quantity(root_label, "J") == pytest.approx(result["measured_j"], rel=5e-3)
    backward = page.locator(".frame", has_text="backward").first
    energy_j = sum(row["energy_j"] or 0 for row in result["rows"] if "backward" in row["path"])
    assert parse_quantity(backward.get_attribute("aria-label"), "J") == pytest.approx(energy_j, rel=5e-3)
    assert re.search("between .* and ", backward.get_attribute("aria-label"))
    backward.click()
    assert page.locator(".frame.focus").inner_text().startswith("backward")
    assert page.locator(".frame.focus").bounding_box()["width"] > 1000
    assert page.locator(".crumbs button").all_inner_texts() == ["all", "train", "backward"]
    page.keyboard.press("Escape")
    assert page.locator(".frame.focus").inner_text().startswith("all")
    page.get_by_label("Search in the flame graph").fill("conv2")
    hits = page.locator(".frame.hit").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert hits and all("conv2" in hit for hit in hits)
    matching_energy_j = sum(
        row["energy_j"] or 0 for row in result["rows"] if any("conv2" in part for part in row["path"])
    )
    assert parse_quantity(page.inner_text("#flame .found"), "J") == pytest.approx(matching_energy_j, rel=5e-3)
    page.get_by_role("group", name="Value of boxes").get_by_text("Seconds").click()
    assert frames.first.locator(".frame-value").inner_text().endswith("s")
    page.get_by_role("group", name="Phase").get_by_text("Forward").click()
    assert not page.locator(".frame", has_text="backward").count()


def test_the_flame_graph_ends_in_the_kernels_of_each_layer(opened, report):
    page = opened()
    result = report("stack")
    on_gpu = [row for row in result["rows"] if row["device"] == "gpu0" and len(row["path"]) == 4]
    layer = on_gpu[0]["path"][:3]
    kernels = [row for row in on_gpu if row["path"][:3] == layer]
    layer_row = next(row for row in report("layer")["rows"] if row["path"] == layer and row["device"] == "gpu0")
    assert sum(row["energy_j"] for row in kernels) == pytest.approx(layer_row["energy_j"], rel=1e-6)
    page.get_by_role("group", name="Phase").get_by_text(layer[1].capitalize()).click()
    box = page.locator(f'.frame[aria-label^="{" › ".join(on_gpu[0]["path"])}"]')
    assert parse_quantity(box.get_attribute("aria-label"), "J") == pytest.approx(on_gpu[0]["energy_j"], rel=5e-3)
    page.get_by_role("group", name="Depth").get_by_role("button", pressed=False).click()
    assert not box.count()


def test_the_flame_graph_can_be_walked_with_arrows(opened):
    page = opened()
    page.locator(".frame").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("train › backward")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("train › forward")
    page.keyboard.press("Enter")
    assert page.locator(".crumbs button").last.inner_text() == "forward"


def test_power_over_time_zooms_by_keys_buttons_and_the_mouse(opened, report):
    page = opened()
    result = report("domain")
    reading_box = page.locator("#timeline .reading")
    gpu = next(domain for domain in result["domains"] if domain["name"] == "gpu0")
    assert parse_quantity(reading_box.inner_text().split("gpu0")[1], "J") == pytest.approx(gpu["measured_j"], rel=5e-3)
    page.locator("#timeline .chart[tabindex]").focus()
    page.keyboard.press("+")
    zoomed_text = reading_box.inner_text()
    assert parse_quantity(zoomed_text.split("–")[1], "s") == pytest.approx(0.75 * result["elapsed_s"], rel=0.01)
    page.get_by_label("Show all").click()
    plot = page.locator("#timeline .u-over").first.bounding_box()
    page.mouse.move(plot["x"] + plot["width"] * 0.25, plot["y"] + 50)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.5, plot["y"] + 60, steps=5)
    page.mouse.up()
    dragged_text = reading_box.inner_text()
    assert parse_quantity(dragged_text, "s") == pytest.approx(0.25 * result["elapsed_s"], rel=0.02)
    assert parse_quantity(dragged_text.split("–")[1], "s") == pytest.approx(0.5 * result["elapsed_s"], rel=0.02)


def test_epochs_report_energy_and_energy_per_unit_of_loss(opened, report):
    page = opened()
    rows = page.locator("#loss .epochs tbody tr").all_inner_texts()
    result = report("epoch")["rows"]
    assert len(rows) == len(result) == 4
    for text, row in zip(rows, result):
        assert parse_quantity(text.split("\t")[1], "J") == pytest.approx(row["energy_j"], rel=6e-3)
    assert "J" in rows[1].split("\t")[-1]


def test_violins_of_equal_steps_agree_with_the_layer(opened, report):
    page = opened()
    page.locator("#violins details summary").click()
    cells = [row.split("\t") for row in page.locator("#violins tbody tr").all_inner_texts()]
    energies = {" ".join(row["path"]): row["energy_j"] for row in report("layer")["rows"] if row["device"] == "gpu0"}
    assert len(cells) == 40
    for name, sample_unit, samples, *_, median, _, _ in cells:
        assert (sample_unit, samples) == ("step", "120")
        assert parse_quantity(median, "J") == pytest.approx(energies[name] / 120, rel=0.1)


def test_a_name_that_is_markup_is_shown_as_text(opened):
    page = opened()
    assert page.locator("main b", has_text="bold").count() == 0
    page.get_by_label("Filter rows").fill("</script><b>bold</b>")
    assert names(page) and all("</script><b>bold</b>" in name for name in names(page))
    assert '<made & "up">' in page.title()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_page_fits_the_window_width_in_both_themes(opened, width, scheme):
    page = opened(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    original_background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(".theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != original_background


def test_a_screen_reader_finds_landmarks_names_and_tables(opened):
    page = opened()
    assert page.locator("main, header.bar-top, nav[aria-label], footer").count() == 4
    for picture in page.locator("[role=img]").all():
        assert picture.get_attribute("aria-label")
    count_unnamed_script = "all => all.filter(one => !one.textContent.trim() && !one.getAttribute('aria-label')).length"
    assert page.eval_on_selector_all("button", count_unnamed_script) == 0
    assert page.eval_on_selector_all("table", "all => all.filter(one => !one.caption).length") == 0
    count_unlabelled_script = "all => all.filter(one => !one.getAttribute('aria-labelledby')).length"
    assert page.eval_on_selector_all("section", count_unlabelled_script) == 0


def test_page_prints_in_light_colours_without_controls(opened):
    page = opened(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".bar-top").is_visible() and not page.locator("#tables .toolbar").is_visible()
    assert page.locator("#tables table").is_visible()


def test_without_scripts_the_numbers_are_still_shown(browser, html, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(html.as_uri())
    text = page.inner_text("main")
    assert f"{report('domain')['measured_j']:.4g} J" in text and "not attributed" in text
    assert page.locator("svg").count() >= 3
    context.close()


@pytest.mark.parametrize("name", ["v1.0", "v1.1", "v1.2"])
def test_the_page_of_a_damaged_or_small_recording_states_it(opened, page_of, name):
    page = opened(file=page_of(RECORDINGS / f"{name}.joule"))
    assert "the recording is incomplete" in page.inner_text("#summary")
    assert page.locator("#notes li").count() > 0


def test_a_comparison_page_matches_its_json_and_can_be_sorted(opened, compared):
    file, result = compared
    page = opened(file=file)
    assert parse_quantity(page.inner_text(".hero"), "%") / 100 == pytest.approx(result["total"]["relative"], abs=6e-4)
    new_entries = [entry for entry in result["entries"] if entry["verdict"] == "new"]
    page.get_by_role("group", name="Verdict").get_by_text("New").click()
    assert len(names(page)) == len(new_entries) and all("blocks.16" in name for name in names(page))
    page.locator("#tables th[data-key=b] button").click()
    falling = [parse_quantity(text, "J") for text in column(page, "b")]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == pytest.approx(max(entry["b"]["energy_j"] for entry in new_entries), rel=1e-3)
    page.get_by_role("group", name="Verdict").get_by_text("All").click()
    page.get_by_label("Filter rows").fill("</script>")
    assert names(page) and page.locator("main b").count() == 0


def test_an_invalid_path_for_the_page_is_reported_immediately(joulemap, made, tmp_path):
    outcome = joulemap("report", "--html", tmp_path / "no" / "page.html", made)
    assert outcome.code != 0 and "page.html" in outcome.err


def test_the_page_contains_the_json_values_to_the_last_digit(html, report):
    data = json.loads(html.read_text().split('id="joulemap-data">')[1].split("</script>")[0])
    assert data["run"]["measured_j"] == report("domain")["measured_j"]
    levels = {level["by"]: level for level in data["levels"]}
    for level_name in ("phase", "layer", "op", "kernel"):
        result = report(level_name)
        assert (
            levels[level_name]["attributed_j"] == result["attributed_j"]
            and levels[level_name]["idle_j"] == result["idle_j"]
        )
        assert [row[5] for row in levels[level_name]["rows"]] == [row["energy_j"] for row in result["rows"]]
