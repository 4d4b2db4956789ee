# SPDX-License-Identifier: Apache-2.0
"""Disclosures are valid for the schemas and models that their publishers ship as Python packages."""

from __future__ import annotations

import io
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_python_model import v3_0_1 as spdx

EXAMPLE_RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
DISCLOSURE_OPTIONS = ("--model-name", "resnet50", "--stage", "training", "--gco2-per-kwh", "56", "--pue", "1.2")


def run_disclosure(joulemap, format: str) -> str:
    outcome = joulemap("report", EXAMPLE_RECORDING, "--by", "domain", "--disclose", format, *DISCLOSURE_OPTIONS)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_cyclonedx_1_6_is_valid(joulemap):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(run_disclosure(joulemap, "cyclonedx")) is None


def test_spdx_3_0_1_is_read_by_its_model(joulemap):
    objects = spdx.SHACLObjectSet()
    spdx.JSONLDDeserializer().read(io.BytesIO(run_disclosure(joulemap, "spdx3").encode()), objects)
    (package,) = objects.foreach_type(spdx.ai_AIPackage)
    energy, _ = package.ai_energyConsumption.ai_trainingEnergyConsumption
    assert energy.ai_energyUnit == spdx.ai_EnergyUnitType.kilowattHour and float(energy.ai_energyQuantity) > 0
    assert package.creationInfo.specVersion == "3.0.1"
    assert not objects.missing_ids
