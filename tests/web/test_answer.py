"""The top of the page: the answer in words, and active and waiting energy."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from page_numbers import assert_near, assert_near_share, parse_quantity

CAUSES = {"launch": "waiting for launches", "unknown": "idle: unknown cause", "shutdown": "idle: shutdown"}


@pytest.fixture(scope="session")
def idle_recording(binaries: Path, tmp_path_factory) -> Path:
    """A recording of 40 steps with 8 layers: its GPU is idle for much of its time."""
    file = tmp_path_factory.mktemp("idle") / "idle.joule"
    subprocess.run([binaries / "joulemap-made-recording", file, "40", "8", "3"], check=True, timeout=60)
    return file


def test_the_page_opens_with_its_energy_and_what_cost_most(opened, report):
    page = opened()
    answer = page.inner_text("#summary header + .answer")
    result = report("layer")
    assert parse_quantity(answer, "J") == pytest.approx(result["measured_j"], rel=6e-3)
    background_j = sum(row["energy_j"] for row in result["rows"] if row["path"] == ["background"])
    command_j = result["attributed_j"] + result["idle_j"] + result["unattributed_j"] - background_j
    costliest_row = next(row for row in report("phase")["rows"] if row["path"] != ["background"])
    costliest_phase_match = re.search(r"costliest phase is (.*) on (\S+) with ([\d.]+ \w+) \(([\d.]+ %)", answer)
    assert (
        costliest_phase_match[1].split(" ") == costliest_row["path"]
        and costliest_phase_match[2] == costliest_row["device"]
    )
    assert_near(costliest_phase_match[3], "J", costliest_row["energy_j"])
    assert_near_share(costliest_phase_match[4], costliest_row["energy_j"] / command_j)
    name, joules, share = re.search(r"all passes together: (\S+) with ([\d.]+ \w+) \(([\d.]+ %)", answer).groups()
    layers = [row["path"][-1] for row in result["rows"] if len(row["path"]) > 2]
    pattern = re.compile(re.escape(name).replace(r"\*", r"\d+") + r"(\.\d+)*")
    all_passes_j = sum(
        row["energy_j"]
        for row in report("module")["rows"]
        if row["path"][-1] in layers and pattern.fullmatch(row["path"][-1])
    )
    assert_near(joules, "J", all_passes_j)
    assert_near_share(share, all_passes_j / command_j)


def test_what_the_gpu_waited_for_is_the_sentence_of_the_text_report(opened, page_of, joulemap, idle_recording):
    text = " ".join(joulemap("report", "--by", "layer", idle_recording).out.split())
    sentence = re.search(r"\d+ % of the energy of gpu0 was used while it was idle: [^.]*\.", text)[0]
    answer = opened(file=page_of(idle_recording)).inner_text(".answer")
    assert sentence in answer
    idle = int(sentence.split(" %")[0])
    assert f"Work on gpu0 used {100 - idle} % of its energy." in answer


def test_active_and_waiting_energy_add_up_and_match_json(opened, report):
    page = opened()
    result = report("phase")
    background_j = sum(row["energy_j"] for row in result["rows"] if row["path"] == ["background"])
    expected_energies_j = {"active": result["attributed_j"] - background_j, "active: background": background_j}
    for entry in result["idle"]:
        name = "idle CPUs" if entry["device"] == "cpu" else CAUSES[entry["cause"]]
        expected_energies_j[name] = expected_energies_j.get(name, 0) + entry["energy_j"]
    total_energy_j = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
    items = page.locator(".answer-bar li").all()
    assert {item.locator(".legend-name").inner_text() for item in items} == set(expected_energies_j)
    for item in items:
        name = item.locator(".legend-name").inner_text()
        assert_near(item.locator("b").inner_text(), "J", expected_energies_j[name])
        assert_near_share(item.locator(".unit").inner_text(), expected_energies_j[name] / total_energy_j)
    assert sum(expected_energies_j.values()) == pytest.approx(total_energy_j, rel=1e-6)
    label = page.get_attribute(".answer-bar [role=img]", "aria-label")
    assert all(name in label for name in expected_energies_j)


def test_the_tree_comes_after_the_answer(opened):
    sections = opened().eval_on_selector_all("main > section", "all => all.map((one) => one.id)")
    assert sections[:2] == ["summary", "flame"]


def test_a_comparison_opens_with_its_verdict_in_words(opened, compared):
    file, result = compared
    answer = opened(file=file).inner_text("#summary header + .answer")
    verdicts = {"grew": "more energy", "shrank": "less energy", "within_noise": "within the noise"}
    assert verdicts[result["total"]["verdict"]] in answer
    a, b = re.search(r"A used (\S+\s\w+) per \w+, B (\S+\s\w+)", answer).groups()
    assert_near(a, "J", result["total"]["a"]["energy_j"])
    assert_near(b, "J", result["total"]["b"]["energy_j"])


def test_a_note_explains_itself_without_a_network(opened, page_with_changed_data):
    def add_notes(data: dict) -> None:
        message = {"count": 1, "message": "a note", "remedy": ""}
        data["diagnostics"] = [{"code": "kernels_by_time", **message}, {"code": "toString", **message, "message": "b"}]

    page = opened(file=page_with_changed_data(add_notes))
    known_note, unknown = page.locator("#notes li").all()[:2]
    known_note.locator("summary").click()
    assert "split by time" in known_note.locator("details p").inner_text()
    assert unknown.locator("details").count() == 0
    assert page.locator("#notes a").count() == 0
