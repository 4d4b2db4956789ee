"""Names of modules: short where they stay unambiguous, and complete for copying, filtering and screen readers."""

from __future__ import annotations

import pytest
from page_numbers import rows_of


def nest_modules(data: dict) -> None:
    """All modules move into one that contains nothing else: model.core."""
    data["names"] = [f"model.core.{name}" if name.startswith("blocks.") else name for name in data["names"]]


@pytest.fixture
def nested(opened, page_with_changed_data):
    return opened(file=page_with_changed_data(nest_modules))


def test_a_table_shows_the_shortest_unambiguous_name(nested):
    cell = nested.locator("#tables tbody th", has=nested.locator(".shortened")).first
    full_name = cell.get_attribute("title").split(" › ")[-1]
    assert full_name.startswith("model.core.blocks.")
    cut_prefix = cell.locator(".cut")
    assert cut_prefix.inner_text() == "model.core." and cut_prefix.bounding_box()["width"] == 0


def test_text_of_a_row_is_its_full_name(nested):
    names = [row[0] for row in rows_of(nested, "Layers")]
    titles = nested.eval_on_selector_all("#tables tbody th", "cells => cells.map((cell) => cell.title)")
    for name, title in zip(names, titles):
        assert all(part in name for part in title.split(" › "))


def test_a_selected_name_is_copied_in_full(nested):
    selection_and_title = nested.evaluate(
        """() => {
          const cell = document.querySelector("#tables tbody th:has(.shortened)");
          getSelection().selectAllChildren(cell);
          return [getSelection().toString(), cell.title];
        }"""
    )
    assert selection_and_title[0].endswith(selection_and_title[1].split(" › ")[-1])


def test_the_full_name_filters_rows(nested):
    nested.get_by_label("Filter rows").fill("model.core.blocks.3.conv2 backward")
    titles = nested.eval_on_selector_all("#tables tbody th", "cells => cells.map((cell) => cell.title)")
    assert titles and all(title.endswith("backward › model.core.blocks.3.conv2") for title in titles)


def test_modules_that_contain_one_module_share_a_box_of_the_tree(nested):
    box = nested.locator(".frame", has_text="model.core.blocks").first
    assert "model.core.blocks: " in box.get_attribute("aria-label")
    box.click()
    assert nested.locator(".crumbs button").all_inner_texts()[-1] == "model.core.blocks"
    nested.get_by_label("Search in the flame graph").fill("model.core.blocks.3.conv2")
    assert nested.locator(".frame.hit").count() > 0


def test_names_that_end_alike_stay_whole(opened):
    page = opened()  # blocks.0.conv1, blocks.1.conv1, ...
    assert page.locator("#tables .shortened").count() == 0
