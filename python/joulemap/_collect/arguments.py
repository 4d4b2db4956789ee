# SPDX-License-Identifier: Apache-2.0
"""Command line of the collector, as strict as that of the C++ program (src/cli/usage_check.h)."""

from __future__ import annotations

import argparse
import difflib
import math
from typing import Any


def parse_positive_number(text: str) -> float:
    """Parses a finite number above 0."""
    value = float(text)
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def parse_count(text: str) -> int:
    """Parses an integer above 0."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


class StrictArgumentParser(argparse.ArgumentParser):
    """Rejects abbreviated options and suggests the nearest known option for an unknown one. Exits with code 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def, override]
        parsed_arguments, unknown_words = self.parse_known_args(args, namespace)
        if unknown_words:
            self.error(
                self._unknown_argument_message(
                    next((word for word in unknown_words if word.startswith("-")), unknown_words[0])
                )
            )
        return parsed_arguments

    def _unknown_argument_message(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word}"
        option = word.partition("=")[0]
        known_options = [name for name in self._option_string_actions if name.startswith("--")]
        similar_options = [name for name in known_options if name.startswith(option) and len(option) > 3]
        similar_options += difflib.get_close_matches(option, known_options, n=1, cutoff=0.75)
        return f"unknown option {option}" + (f"; did you mean {similar_options[0]}?" if similar_options else "")
