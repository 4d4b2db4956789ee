"""jm.predict: the energy of a module before it runs, by the program that lies beside the package."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ONNX = ROOT / "tests" / "data" / "onnx" / "resnet18.onnx"

NETWORK = """
torch = __import__("torch")
nn = torch.nn
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).to("meta")
image = torch.empty(4, 3, 8, 8, device="meta")
"""


def test_a_module_without_data_is_predicted_layer_by_layer(python):
    pytest.importorskip("torch")
    one = python(
        NETWORK
        + """
one = jm.predict(model, [image])
step = jm.predict(model, [image], training=True, optimizer="sgd")
print(json.dumps({"j": one.joules, "low": one.low, "high": one.high, "names": [layer.name for layer in one.layers],
                  "device": one.device, "pass": one.told["pass"], "step": step.joules, "step_pass": step.told["pass"],
                  "text": str(one)}))
"""
    )
    assert 0 < one["low"] < one["j"] < one["high"]
    assert {"0", "3"} <= set(one["names"])
    assert "H200" in one["device"] and one["device"] in one["text"]
    assert one["pass"] == "inference" and one["step_pass"] == "training"
    assert one["step"] > one["j"]


def test_a_trace_is_plain_data(python):
    pytest.importorskip("torch")
    listed = python(NETWORK + "print(json.dumps(jm.trace(model, [image])))")
    assert listed["schema"] == "joulemap.operations/1"
    assert "convolution" in {operation["kind"] for operation in listed["operations"]}


def test_a_file_is_predicted_without_any_framework(python):
    one = python(
        f"""
one = jm.predict({str(ONNX)!r}, batch=8, dtype="bf16")
assert "torch" not in sys.modules
print(json.dumps({{"j": one.joules, "layers": len(one.layers), "batch": one.told["batch"]}}))
"""
    )
    assert one["j"] > 0 and one["layers"] > 10 and one["batch"] == 8


def test_what_cannot_be_predicted_says_what_would_help(python, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    said = python(
        f"""
said = []
for model, device in (({str(broken)!r}, None), (3, None), ({str(ONNX)!r}, "abacus")):
    try:
        jm.predict(model, device=device)
    except (jm.JoulemapError, TypeError) as error:
        said.append(str(error))
print(json.dumps(said))
"""
    )
    assert len(said) == 3
    assert "to_json" in said[0] and "int" in said[1] and "abacus" in said[2]
