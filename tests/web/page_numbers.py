"""Parses numbers and tables of a page as a reader sees them."""

from __future__ import annotations

import re

import pytest

THREE_DIGIT_TOLERANCE, FOUR_DIGIT_TOLERANCE = 6e-3, 6e-4
UNIT_SCALES = {"T": 1e12, "G": 1e9, "k": 1e3, "M": 1e6, "m": 1e-3, "µ": 1e-6, "n": 1e-9, "": 1}

ROWS_SCRIPT = """caption => {
  const table = [...document.querySelectorAll("table")].find((one) => one.caption.textContent.startsWith(caption));
  return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
}"""


def parse_quantity(text: str, unit: str) -> float:
    """The text "12.3 kJ" in joules."""
    quantity_match = re.search(rf"([-−]?[\d.]+)([TGkMmµn]?){re.escape(unit)}", re.sub(r"[ \u202f\n]", "", text))
    assert quantity_match, text
    return float(quantity_match[1].replace("−", "-")) * UNIT_SCALES[quantity_match[2]]


def read_captions(page) -> set[str]:
    return set(page.eval_on_selector_all("table", "all => all.map((one) => one.caption.textContent)"))


def rows_of(page, caption: str) -> list[list[str]]:
    """The cells of the table whose caption starts with this text, even if it is folded."""
    return page.evaluate(ROWS_SCRIPT, caption)


def assert_near(text: str, unit: str, value, rel: float = THREE_DIGIT_TOLERANCE) -> None:
    if value is None:
        assert text == "–"
    else:
        assert parse_quantity(text, unit) == pytest.approx(value, rel=rel, abs=1e-12), text


def assert_near_share(text: str, share) -> None:
    if share is None:
        assert text == "–"
    elif "<" in text:
        assert abs(share) < 5e-4
    else:
        assert parse_quantity(text, "%") / 100 == pytest.approx(share, abs=6e-4)
