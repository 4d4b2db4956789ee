# SPDX-License-Identifier: Apache-2.0
"""The documentation: the site builds without a warning, every link leads somewhere, and codespell finds no mistake.

MkDocs itself checks the links, anchors and navigation of docs/ (`validation` in mkdocs.yml). Pages beside docs/, such as
README.md, are checked here, by GitHub's rule for anchors.
"""

from __future__ import annotations

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README_FOLDERS = ("examples", "bench/predict", "tests/sysroots")
ROOT_PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / folder / "README.md" for folder in README_FOLDERS)])
SPELL_CHECKED_PATHS = ["docs", ".github", *(str(page.relative_to(ROOT)) for page in ROOT_PAGES)]
FENCED_BLOCK_PATTERN = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK_PATTERN = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
# Text of a list or table that Markdown took for a paragraph: a blank line before it is missing.
RAW_MARKDOWN_PATTERN = re.compile(r"^(?:[-*] |\d\. |\|)", re.MULTILINE)


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    process = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=300)
    # A link to a file that the site leaves out is no warning to MkDocs.
    problems = [line for line in process.stderr.splitlines() if not line.startswith("INFO") or " a link " in line]
    assert process.returncode == 0 and problems == [], "\n".join(problems)
    return folder


class Page(html.parser.HTMLParser):
    """The paragraphs of a page, and the addresses that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.paragraphs: list[str] = []
        self._is_in_paragraph = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe"):
            self.loaded.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(values.get("href") or "")
        if tag == "p":
            self._is_in_paragraph = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._is_in_paragraph = False

    def handle_data(self, data: str) -> None:
        if self._is_in_paragraph:
            self.paragraphs[-1] += data


def test_every_page_is_built(site_folder):
    pages = [page.relative_to(ROOT / "docs") for page in ROOT.glob("docs/**/*.md")]
    assert len(pages) > 50
    for page in pages:
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        assert (site_folder / page.parent / name).exists(), page


def test_markdown_lists_and_tables_are_rendered(site_folder):
    for path in sorted(site_folder.rglob("*.html")):
        for paragraph in Page(path.read_text()).paragraphs:
            assert not RAW_MARKDOWN_PATTERN.search(paragraph), (
                f"{path.relative_to(site_folder)}: blank line before this: {paragraph}"
            )


def test_the_site_loads_nothing_from_other_hosts(site_folder):
    for path in sorted(site_folder.rglob("*.html")):
        foreign = [address for address in Page(path.read_text()).loaded if re.match(r"(https?:)?//", address)]
        assert foreign == [], path.relative_to(site_folder)


def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings as GitHub makes them."""
    anchors: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", FENCED_BLOCK_PATTERN.sub("", page.read_text()), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", title)
        anchor = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        numbered_anchors = (f"{anchor}-{number}" for number in range(1, 100))
        anchors.add(anchor if anchor not in anchors else next(name for name in numbered_anchors if name not in anchors))
    return anchors


def find_link_fault(page: Path, target: str) -> str | None:
    """Why a link leads nowhere; None if it does not."""
    name, _, anchor = target.partition("#")
    path = page if name == "" else page.parent / name
    if not path.exists():
        return f"{name} does not exist"
    if anchor and anchor not in anchors_of(path):
        return f"{path.name} has no heading #{anchor}"
    return None


@pytest.mark.parametrize("page", ROOT_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_repository_pages_have_targets(page):
    targets = [
        target
        for target in LINK_PATTERN.findall(FENCED_BLOCK_PATTERN.sub("", page.read_text()))
        if not re.match(r"\w+:", target)
    ]
    assert {target: fault for target in targets if (fault := find_link_fault(page, target))} == {}


def test_links_to_missing_files_and_headings_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title: `code` and words\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n")
    assert anchors_of(page) == {"a-title-code-and-words", "twice", "twice-1"}
    assert find_link_fault(page, "page.md#twice-1") is None and find_link_fault(page, "#twice") is None
    assert find_link_fault(page, "#no-heading") and find_link_fault(page, "other.md")


def find_misspellings(*paths: str, text: str | None = None) -> str:
    process = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *paths],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return process.stdout + process.stderr if process.returncode else ""


def test_codespell_finds_no_mistake_in_the_documents():
    assert find_misspellings(*SPELL_CHECKED_PATHS) == ""


def test_codespell_finds_no_mistake_in_the_help(joulemap, tmp_path):
    joulemap("man", tmp_path)
    assert len(list(tmp_path.rglob("*.1"))) > 10
    assert find_misspellings(str(tmp_path)) == ""


def test_codespell_finds_mistakes(tmp_path):
    (tmp_path / "page.md").write_text("This page is writen badly.\n")
    assert "writen ==> written" in find_misspellings(str(tmp_path))
