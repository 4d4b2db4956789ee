# SPDX-License-Identifier: Apache-2.0
"""The wheel alone in a new environment: no other package, no checkout."""

from __future__ import annotations

import json
import re

BUSY_EXPRESSION = "sum(i * i for i in range(3_000_000))"


def test_the_environment_contains_no_other_package(bare_environment):
    names = {
        package["name"]
        for package in json.loads(bare_environment.output("pip list --format json --disable-pip-version-check"))
    }
    assert names <= {"joulemap", "pip", "setuptools"}


def test_the_program_and_the_module_print_the_same_version(bare_environment):
    version = bare_environment.output("joulemap --version")
    assert re.fullmatch(r"joulemap \d+\.\d+\.\d+\n", version)
    assert bare_environment.output("python -m joulemap --version") == version
    assert bare_environment.output("python -c 'import joulemap; print(\"joulemap\", joulemap.__version__)'") == version
    assert bare_environment.output("pip show joulemap | grep ^Version").split()[1] == version.split()[1]


def test_doctor_lists_the_sensors(bare_environment):
    assert "sensors" in json.loads(bare_environment.output("joulemap doctor --json"))
    assert bare_environment.output("joulemap doctor").startswith("joulemap ")


def test_stat_prints_the_energy_of_a_command(bare_environment):
    process = bare_environment.run("joulemap stat -- true")
    assert process.returncode == 0
    assert "Energy of 'true'" in process.stdout + process.stderr


def test_record_and_report_show_the_energy_of_a_program(bare_environment):
    bare_environment.output(f"joulemap record -o bare.joule -- python -c '{BUSY_EXPRESSION}'")
    assert " J" in bare_environment.output("joulemap report bare.joule")
    assert "<html" in bare_environment.output("joulemap report bare.joule --html page.html && cat page.html").lower()


def test_the_package_measures_a_block_of_code(bare_environment):
    program = f'import joulemap as jm\nwith jm.measure("work") as m:\n    {BUSY_EXPRESSION}\nprint(m.joules > 0)'
    assert bare_environment.output(f"python -c '{program}'") == "True\n"


def test_the_exit_status_of_the_program_is_kept(bare_environment):
    status = bare_environment.run("joulemap report missing.joule").returncode
    assert status != 0
    assert bare_environment.run("python -m joulemap report missing.joule").returncode == status


def test_uninstalling_leaves_no_files(bare_environment, wheel):
    folder = bare_environment.output(
        "python -c 'import joulemap, os; print(os.path.dirname(joulemap.__file__))'"
    ).strip()
    bare_environment.output("pip uninstall --yes --quiet joulemap")
    remaining_files = bare_environment.output(f"find {folder} -type f -not -name '*.pyc' 2>/dev/null || true")
    bare_environment.output(f"pip install --quiet --no-index --disable-pip-version-check {wheel}")
    assert remaining_files == ""
