# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs (mkdocs.yml): removes the markers of measured figures from the pages of the site.

A figure is written as <!-- e:ID -->4.2 %<!-- / -->. At the begin of a line Markdown would take the comment for a block
and split the paragraph.
"""

from __future__ import annotations

import re

MARKER_PATTERN = re.compile(r"<!-- (?:e:\S+|/) -->")


def on_page_markdown(markdown: str, **_: object) -> str:
    return MARKER_PATTERN.sub("", markdown)
