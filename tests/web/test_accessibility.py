"""The page for all readers: axe-core finds no violation in either theme; keyboard and print work."""

from __future__ import annotations

from pathlib import Path

import pytest

FOCUSABLE_SCRIPT = """() => [...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
  .filter((one) => one.checkVisibility() && !one.disabled).map((one) => one.dataset.mark = String(Math.random()))"""


@pytest.fixture(scope="session")
def axe_script(binaries: Path) -> str:
    file = binaries.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        pytest.skip("the program was built without npm: axe-core is missing")
    return file.read_text()


def find_violations(page, axe_script: str) -> list[str]:
    page.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true; })")
    page.evaluate(axe_script)
    axe_result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert any(rule["id"] == "color-contrast" for rule in axe_result["passes"])
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in axe_result["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_no_violation_in_the_page_of_a_run(opened, axe_script, width, scheme):
    assert find_violations(opened(width, scheme), axe_script) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_a_comparison(opened, compared, axe_script, scheme):
    assert find_violations(opened(scheme=scheme, file=compared[0]), axe_script) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_shortened_names_and_untraced_steps(
    opened, page_with_changed_data, axe_script, scheme
):
    def change(data: dict) -> None:
        data["names"] = [f"model.{name}" if name.startswith("blocks.") else name for name in data["names"]]
        data["step_details"] = data["step_details"][:1]

    page = opened(scheme=scheme, file=page_with_changed_data(change))
    page.get_by_role("button", name="Longest").click()
    page.get_by_role("slider", name="Step").press("End")
    assert "not in this page" in page.inner_text(".step-panel")
    assert find_violations(page, axe_script) == []


def test_the_tab_key_reaches_every_control(opened):
    page = opened()
    marks = set(page.evaluate(FOCUSABLE_SCRIPT))
    reached_marks = set()
    for _ in range(2 * len(marks)):
        page.keyboard.press("Tab")
        reached_marks.add(page.evaluate("document.activeElement.dataset.mark ?? ''"))
        if marks <= reached_marks:
            break
    assert marks - reached_marks == set()


def test_page_prints_the_chosen_step_without_controls(opened):
    page = opened(scheme="dark")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(theme) == "light"
    assert page.locator("#steps .step-chart").is_visible() and page.locator(".step-panel table").first.is_visible()
    assert page.locator(".answer").is_visible()
    for control_selector in (".step-slider", "#steps .toolbar", ".bar-top"):
        assert not page.locator(control_selector).is_visible(), control_selector
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(theme) == "dark"
