"""Pages of recordings and experiments with hostile names: a browser shows them, runs no script and sends no request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from attack.hostile_text import NAMES, hostile_recording
from cli.made_rows import make_domain, deterministic_noise, write_rows

MARKUP_NAMES = [name for name in NAMES if "\x00" not in name] + [
    '"><script>hostile()</script>',
    "' onmouseover='hostile()",
    "</style><script>hostile()</script>",
    "<!--<script>",
    "javascript:hostile()",
    "]]><script>hostile()</script>",
    "${hostile()}",
    "<svg/onload=hostile()>",
]


def analysis_page(binaries: Path, folder: Path) -> Path:
    """The page of an experiment whose functions, domains, metrics, flags and levels have hostile names."""

    def row_of(level: int, block: int) -> dict:
        cause = {"cause": "compute", "cause_basis": "ledger", "cause_s": {"compute": 2.0}}
        functions = [
            {"name": name, "device": "gpu0", "count": 9, "time_s": 2.0, "energy_j": 10.0 + level, **cause}
            for name in MARKUP_NAMES
        ]
        return {
            "elapsed_s": 10 + deterministic_noise(block + 3),
            "domains": [
                make_domain(MARKUP_NAMES[block], 100 * (1 + level) + deterministic_noise(block)),
                make_domain("gpu0", 50 + level),
            ],
            "metrics": {"accuracy": 0.7 + 0.1 * level},
            "functions": functions,
            "diagnostics": [{"code": name, "count": 1, "message": name, "remedy": name} for name in MARKUP_NAMES],
        }

    experiment_folder = write_rows(folder / "exp", row_of)
    file = folder / "analysis.html"
    analyze = [binaries / "joulemap", "experiment", "analyze", experiment_folder, "--html", file]
    outcome = subprocess.run(analyze, capture_output=True, text=True, timeout=60, check=False)
    assert outcome.returncode == 0, outcome.stderr
    return file


def check_page(browser, file: Path) -> str:
    """Returns the visible text. Any effect of an injected script fails the test."""
    page = browser.new_page()
    requested_urls: list[str] = []
    ran: list[str] = []
    page.expose_function("hostile", lambda: ran.append("hostile"))
    page.on(
        "request", lambda request: None if request.url.startswith("file://") else requested_urls.append(request.url)
    )
    page.on("dialog", lambda dialog: (ran.append("dialog"), dialog.dismiss()))
    page.goto(file.as_uri())
    for element in page.query_selector_all("td, th, rect, text")[:200]:
        if element.is_visible():
            element.dispatch_event("mouseover")
    page.wait_for_timeout(0)
    event_handler_count = page.evaluate(
        "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length"
    )
    visible_text = page.inner_text("body")
    page.close()
    assert (ran, requested_urls, event_handler_count) == ([], [], 0)
    return visible_text


def test_a_page_of_an_experiment_shows_hostile_names_and_runs_nothing(browser, binaries, tmp_path):
    visible_text = check_page(browser, analysis_page(binaries, tmp_path))
    assert "<svg/onload=hostile()>" in visible_text or "onload" in visible_text


@pytest.mark.parametrize("verb", ["report", "diff"])
def test_a_page_of_a_recording_shows_hostile_names_and_runs_nothing(browser, binaries, joulemap, tmp_path, verb):
    file = tmp_path / "page.html"
    recording = hostile_recording(binaries, tmp_path, MARKUP_NAMES, "hostile.joule", "trace.json")
    inputs = [recording] * (2 if verb == "diff" else 1)
    outcome = joulemap(verb, *inputs, "--html", file)
    assert outcome.code == 0, outcome.err
    check_page(browser, file)
