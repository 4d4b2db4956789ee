"""The command line of the collector refuses unknown arguments with exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python" / "joulemap"))

from _collect import command  # noqa: E402


def refused(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as exception_info:
        command.main(words)
    assert exception_info.value.code == 2, words
    return capsys.readouterr().err


def test_every_mistyped_option_is_refused_with_the_nearest_known_one(capsys):
    option_names = [name for name in command.make_parser()._option_string_actions if name.startswith("--")]
    assert len(option_names) > 10
    for option in option_names:
        mistyped = option[:-1] if len(option) > 6 else option + "x"
        assert f"unknown option {mistyped}; did you mean --" in refused(capsys, mistyped), mistyped
    assert "unexpected argument surplus" in refused(capsys, "--plan", "surplus")
    assert "unknown option --zzyzx" in refused(capsys, "--zzyzx=3", "--plan")


def test_numbers_of_the_command_line_are_above_zero(capsys):
    for option in ("--seconds", "--active", "--network-active", "--scale", "--settings"):
        for invalid_value in ("nan", "inf", "-1", "0", "banana", ""):
            assert f"argument {option}: " in refused(capsys, f"{option}={invalid_value}")
