"""The step explorer: a chosen step shows its layers and what the GPU waited for, as the exports have them."""

from __future__ import annotations

import pytest
from page_numbers import assert_near, parse_quantity, rows_of

PAUSE_S = 3e-3  # after each step of the made recording: joulemap-made-recording


def choose_step(page, step: int) -> None:
    """By keyboard."""
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    for _ in range(step):
        page.keyboard.press("ArrowRight")
    assert page.inner_text("#steps h3") == f"Step {step}"


@pytest.mark.parametrize("step", [0, 7])
def test_layers_of_a_step_match_the_export(opened, exported, step):
    page = opened()
    choose_step(page, step)
    lines = {
        line["path"]: float(line["energy_j"])
        for line in exported("layer-step")
        if line["per"] == "step" and line["step"] == str(step)
    }
    rows = rows_of(page, f"Step {step}: layers")
    assert len(rows) == 12
    largest_energies_j = sorted(lines.values(), reverse=True)[:12]
    assert [lines[row[0]] for row in rows] == pytest.approx(largest_energies_j, rel=1e-3)
    for path, device, time, energy, _ in rows:
        assert device == "gpu0" and parse_quantity(time, "s") > 0
        assert_near(energy, "J", lines[path])
    shown_j = sum(lines[row[0]] for row in rows)
    count, _, _, energy, _ = page.locator("#steps tfoot tr > *").all_inner_texts()
    assert count == f"{len(lines) - 12} other layers"
    assert_near(energy, "J", sum(lines.values()) - shown_j)


def test_energy_and_time_of_a_step_match_json(opened, report):
    page = opened()
    choose_step(page, 3)
    row = next(row for row in report("step")["rows"] if row["name"] == "3")
    energy, time, power, loss = page.locator("#steps .step-facts").first.inner_text().split(" · ")
    assert_near(energy, "J", row["energy_j"])
    assert_near(time, "s", row["time_s"])
    assert_near(power, "W", row["power_w"])
    assert loss.startswith("loss ")


def test_a_step_shows_what_the_gpu_waited_for(opened, report):
    page = opened()
    choose_step(page, 5)
    recorded_causes = {entry["cause"] for entry in report("phase")["idle"]}
    assert "launch" in recorded_causes
    rows = rows_of(page, "Step 5: what the GPU waited for")
    assert [row[:2] for row in rows] == [["waiting for launches", "gpu0"]]
    assert_near(rows[0][2], "s", PAUSE_S)
    idle_w = parse_quantity(rows[0][3], "J") / PAUSE_S
    assert idle_w == pytest.approx(100, rel=0.3)  # the idle power of the made GPU


def test_a_click_on_a_bar_or_on_the_timeline_chooses_its_step(opened):
    page = opened()
    chart = page.locator(".step-chart")
    box = chart.bounding_box()
    chart.click(position={"x": 64 + (box["width"] - 72) * 60.5 / 120, "y": 60})
    assert page.inner_text("#steps h3") == "Step 60"
    lanes = page.locator(".lanes")
    box = lanes.bounding_box()
    lanes.click(position={"x": 64 + (box["width"] - 72) / 2, "y": 22 + 10})  # the second lane: steps
    assert page.inner_text("#steps h3") != "Step 60"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Step"


def test_buttons_choose_the_longest_step_and_the_next_with_layers(opened, exported, page_with_changed_data):
    def remove_step_details(data: dict) -> None:
        data["step_details"] = [step_detail for step_detail in data["step_details"] if step_detail["number"] % 10 == 0]

    page = opened(file=page_with_changed_data(remove_step_details))
    times = {line["number"]: float(line["time_s"]) for line in exported("step")}
    page.get_by_role("button", name="Longest").click()
    shown_step_number = page.inner_text("#steps h3").split()[1]
    assert times[shown_step_number] == pytest.approx(max(times.values()), rel=1e-5)
    choose_step(page, 12)
    page.get_by_role("button", name="With layers →").click()
    assert page.inner_text("#steps h3") == "Step 20"
    page.get_by_role("button", name="← With layers").click()
    assert page.inner_text("#steps h3") == "Step 10"


def test_a_step_that_was_not_traced_leads_to_the_nearest_that_was(opened, page_with_changed_data):
    def trace_one_step(data: dict) -> None:
        data["step_details"] = [step_detail for step_detail in data["step_details"] if step_detail["number"] == 40]
        data["detailed_steps"] = 1

    page = opened(file=page_with_changed_data(trace_one_step))
    assert "Kernels of 1 of 120 steps were recorded" in page.inner_text("#steps .lead")
    assert page.inner_text("#steps h3") == "Step 40"  # opens where something is known
    choose_step(page, 3)
    assert "not in this page" in page.inner_text(".step-panel") and page.locator(".step-panel table").count() == 0
    page.get_by_role("button", name="Show step 40").click()
    assert page.locator(".step-panel table").count() == 2


def test_a_run_without_kernel_records_states_that_layers_of_steps_are_unknown(opened, page_with_changed_data):
    page = opened(file=page_with_changed_data(lambda data: data.update(step_details=[], detailed_steps=0)))
    assert "no kernel records" in page.inner_text("#steps .lead")
    assert "unknown" in page.inner_text(".step-panel")
