"""The page in a browser: Debian's Chromium, driven by Playwright. Skipped where either is missing."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as playwright_driver:
        chromium = playwright_driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def made(binaries: Path, tmp_path_factory) -> Path:
    """A recording of 120 steps with 64 layers; one layer name looks like markup."""
    file = tmp_path_factory.mktemp("page") / "made.joule"
    subprocess.run([binaries / "joulemap-made-recording", file, "120", "64", "3"], check=True, timeout=60)
    return file


@pytest.fixture(scope="session")
def html(binaries: Path, made: Path) -> Path:
    file = made.with_suffix(".html")
    subprocess.run([binaries / "joulemap", "report", "--html", file, made], check=True, timeout=60)
    if "joulemap-data" not in file.read_text():
        pytest.skip("the program was built without npm: its page is static")
    return file


@pytest.fixture
def report(joulemap, made):
    def result(by: str) -> dict:
        return joulemap("report", "--json", "--by", by, made).json

    return result


@pytest.fixture
def exported(joulemap, made):
    def result(by: str) -> list[dict]:
        out = joulemap("export", made, "--to", "csv", "--by", by).out
        return list(csv.DictReader(io.StringIO(out, newline="")))

    return result


@pytest.fixture
def page_with_changed_data(html: Path, tmp_path):
    """page_with_changed_data(change): the page with changed data; `change` edits the data in place."""

    def write(change) -> Path:
        page_head, page_remainder = html.read_text().split('id="joulemap-data">')
        text, page_tail = page_remainder.split("</script>", 1)
        data = json.loads(text)
        change(data)
        file = tmp_path / "doctored.html"
        escaped_json = json.dumps(data).replace("<", "\\u003c")
        file.write_text(f'{page_head}id="joulemap-data">{escaped_json}</script>{page_tail}')
        return file

    return write


@pytest.fixture
def compared(joulemap, html: Path, made: Path, binaries: Path, tmp_path):
    """(page, JSON) of the comparison of the made recording with one of 66 layers."""
    wider_recording, file = tmp_path / "wider.joule", tmp_path / "diff.html"
    subprocess.run([binaries / "joulemap-made-recording", wider_recording, "120", "66", "3"], check=True, timeout=60)
    assert joulemap("diff", "--html", file, made, wider_recording).code == 0
    return file, joulemap("diff", "--json", made, wider_recording).json


@pytest.fixture
def page_of(joulemap, tmp_path, html):
    """page_of(recording): writes its page; the program contains the page's script."""

    def write(recording: Path) -> Path:
        file = tmp_path / f"{recording.stem}.html"
        outcome = joulemap("report", "--html", file, recording)
        assert outcome.code == 0, outcome.err
        return file

    return write


@pytest.fixture
def opened(browser, html: Path):
    """opened(): the loaded page. Console errors, console warnings and requests for non-local URLs fail the test."""
    pages = []
    page_errors: list[str] = []

    def open_page(width: int = 1440, scheme: str = "light", file: Path = html, **options: object):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        page.on("console", lambda line: page_errors.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page_errors.append(str(error)))
        page.on(
            "request", lambda request: None if request.url.startswith("file://") else page_errors.append(request.url)
        )
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert page_errors == []
