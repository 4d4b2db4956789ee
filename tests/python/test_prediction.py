"""jm.predict: the energy of a module before it runs, computed by the program that ships with the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.onnx_bytes import integer_attribute, integers_attribute, model, node, value, weight_tensor, integer_tensor

ROOT = Path(__file__).resolve().parents[2]
ONNX_FILE = ROOT / "tests" / "data" / "onnx" / "resnet18.onnx"

NETWORK_PROGRAM = """
torch = __import__("torch")
nn = torch.nn
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).to("meta")
image = torch.empty(4, 3, 8, 8, device="meta")
"""


def test_a_module_without_data_is_predicted_layer_by_layer(python):
    pytest.importorskip("torch")
    prediction = python(
        NETWORK_PROGRAM
        + """
one = jm.predict(model, [image])
step = jm.predict(model, [image], training=True, optimizer="sgd")
print(json.dumps({"j": one.energy_j, "low": one.low_j, "high": one.high_j, "names": [layer.name for layer in one.layers],
                  "device": one.device, "pass": one.document["pass"], "step": step.energy_j,
                  "step_pass": step.document["pass"],
                  "text": str(one)}))
"""
    )
    assert 0 < prediction["low"] < prediction["j"] < prediction["high"]
    assert {"0", "3"} <= set(prediction["names"])
    assert "H200" in prediction["device"] and prediction["device"] in prediction["text"]
    assert prediction["pass"] == "inference" and prediction["step_pass"] == "training"
    assert prediction["step"] > prediction["j"]


def test_inputs_may_be_a_tensor_a_sequence_or_keyword_arguments(python):
    pytest.importorskip("torch")
    predicted_energies_j = python(
        NETWORK_PROGRAM + "print(json.dumps([jm.predict(model, given).energy_j for given in (image, [image], (image,), "
        '{"input": image})]))'
    )
    assert predicted_energies_j[0] > 0 and len(set(predicted_energies_j)) == 1


def test_operation_list_is_json_serializable(python):
    pytest.importorskip("torch")
    operation_list = python(NETWORK_PROGRAM + "print(json.dumps(jm.list_operations(model, [image])))")
    assert operation_list["schema"] == "joulemap.operations/1"
    assert "convolution" in {operation["kind"] for operation in operation_list["operations"]}


def test_a_file_is_predicted_without_any_framework(python):
    prediction = python(
        f"""
one = jm.predict({str(ONNX_FILE)!r}, batch=8, precision="bf16")
assert "torch" not in sys.modules
print(json.dumps({{"j": one.energy_j, "layers": len(one.layers), "batch": one.document["batch"]}}))
"""
    )
    assert prediction["j"] > 0 and prediction["layers"] > 10 and prediction["batch"] == 8


def test_unpredictable_input_is_rejected_with_a_remedy(python, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    error_messages = python(
        f"""
said = []
for model, device in (({str(broken)!r}, None), (3, None), ({str(ONNX_FILE)!r}, "abacus")):
    try:
        jm.predict(model, device=device)
    except (jm.JoulemapError, TypeError) as error:
        said.append(str(error))
print(json.dumps(said))
"""
    )
    assert len(error_messages) == 3
    assert "to_json" in error_messages[0] and "int" in error_messages[1] and "abacus" in error_messages[2]


def make_keras_model(shape: list, *layers: dict) -> str:
    inputs = {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": shape}}
    return json.dumps({"class_name": "Sequential", "config": {"name": "m", "layers": [inputs, *layers]}})


def make_onnx_stack(
    kind: str, gate_count: int, directions: int, steps: int, batch: int, width: int, hidden: int, layers: int
) -> bytes:
    """A recurrent stack as PyTorch exports it: one node per layer, followed by the concatenation of both directions."""
    nodes, weights, read = [], [integer_tensor("side", [0, 0, -1])], "x"
    for layer in range(layers):
        input_width = width if layer == 0 else directions * hidden
        sizes = ((f"w{layer}", input_width), (f"r{layer}", hidden))
        weights += [weight_tensor(name, [directions, gate_count * hidden, size]) for name, size in sizes]
        weights.append(weight_tensor(f"b{layer}", [directions, 2 * gate_count * hidden]))
        input_names = [read, f"w{layer}", f"r{layer}", f"b{layer}"]
        nodes.append(node(kind, input_names, [f"y{layer}"], integer_attribute("hidden_size", hidden)))
        nodes.append(node("Transpose", [f"y{layer}"], [f"t{layer}"], integers_attribute("perm", [0, 2, 1, 3])))
        nodes.append(node("Reshape", [f"t{layer}", "side"], [f"s{layer}"]))
        read = f"s{layer}"
    out = value(read, [steps, batch, directions * hidden])
    return model(nodes, [value("x", [steps, batch, width])], [out], weights)


RECURRENT_MODELS = {
    "a stack of LSTMs": (
        "nn.LSTM(256, 256, 2)",
        make_onnx_stack("LSTM", 4, 1, 128, 32, 256, 256, 2),
        [{"class_name": "LSTM", "config": {"name": f"l{i}", "units": 256, "return_sequences": True}} for i in range(2)],
    ),
    "GRUs in both directions": (
        "nn.GRU(256, 320, 2, bidirectional=True)",
        make_onnx_stack("GRU", 3, 2, 128, 32, 256, 320, 2),
        [
            {"class_name": "Bidirectional", "config": {"name": f"b{i}", "merge_mode": "concat", "layer": {
                "class_name": "GRU", "config": {"name": f"g{i}", "units": 320, "return_sequences": True}}}}
            for i in range(2)
        ],
    ),
    "a plain layer": (
        "nn.RNN(256, 256)",
        make_onnx_stack("RNN", 1, 1, 128, 32, 256, 256, 1),
        [{"class_name": "SimpleRNN", "config": {"name": "l", "units": 256, "return_sequences": True}}],
    ),
}  # fmt: skip


def test_shapes_of_inputs_apply_to_files(python, tmp_path):
    """Tensors, shapes and names are translated; the batch is that of the input."""
    layers = [{"class_name": "LSTM", "config": {"name": "l", "units": 8}}]
    (tmp_path / "m.json").write_text(make_keras_model([None, None, 16], *layers))
    batches = python(
        f"""
class Array:
    shape = (4, 32, 16)
given = ([(4, 32, 16)], (4, 32, 16), Array(), {{"x": Array()}})
predictions = [jm.predict({str(tmp_path / "m.json")!r}, inputs) for inputs in given]
predictions.append(jm.predict({str(tmp_path / "m.json")!r}, named={{"x": (4, 32, 16)}}))
print(json.dumps([(one.document["batch"], one.energy_j) for one in predictions]))
"""
    )
    assert len(set(map(tuple, batches))) == 1 and batches[0][0] == 4


def test_arguments_that_do_not_apply_to_a_file_are_refused(python):
    error_messages = python(
        f"""
messages = []
for arguments in ({{"autocast": "bf16"}}, {{"loss": len}}, {{"training": True, "optimizer": len}}, {{"inputs": [3.5]}},
                  {{"named": {{"nothing": (1, 2)}}}}):
    try:
        jm.predict({str(ONNX_FILE)!r}, **arguments)
    except (ValueError, jm.JoulemapError) as error:
        messages.append(str(error))
print(json.dumps(messages))
"""
    )
    assert [
        word in message
        for word, message in zip(("amp-bf16", "loss", "optimizer is a name", "3.5", "nothing"), error_messages)
    ] == [True] * 5


@pytest.mark.parametrize("training", [False, True])
def test_none_stands_for_the_default_inputs_and_optimizer_of_a_file(python, training):
    energies_j = python(
        f"""
options = ({{}}, {{"inputs": None}}, {{"named": None}}, {{"optimizer": None}}, {{"inputs": None, "optimizer": None}})
print(json.dumps([jm.predict({str(ONNX_FILE)!r}, training={training}, **arguments).energy_j for arguments in options]))
"""
    )
    assert len(set(energies_j)) == 1 and energies_j[0] > 0


def test_a_keras_model_on_pytorch_is_a_keras_model(python):
    """On this backend its layers are PyTorch modules, too."""
    document = make_keras_model([None, 8], {"class_name": "Dense", "config": {"name": "d", "units": 4}})
    batch = python(
        f"""
model_class = type("Sequential", (), {{"__module__": "keras.src.models.sequential", "named_modules": lambda self: [],
                                       "to_json": lambda self: {document!r}}})
print(json.dumps(jm.predict(model_class(), batch=8).document["batch"]))
"""
    )
    assert batch == 8


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", RECURRENT_MODELS)
def test_a_recurrent_network_takes_the_same_from_pytorch_onnx_and_keras(python, tmp_path, name, training):
    pytest.importorskip("torch")
    module, onnx, layers = RECURRENT_MODELS[name]
    (tmp_path / "m.onnx").write_bytes(onnx)
    (tmp_path / "m.json").write_text(make_keras_model([32, 128, 256], *layers))
    joules = python(
        f"""
torch = __import__("torch")
nn = torch.nn
files = [{str(tmp_path / "m.onnx")!r}, {str(tmp_path / "m.json")!r}]
made = jm.predict({module}, [torch.empty(128, 32, 256)], training={training})
read = [jm.predict(file, training={training}) for file in files]
assert not any(one.unknown_ops for one in (made, *read))
# A training step of Keras copies its input from the host.
copied = [sum(layer.energy_j for layer in one.layers if layer.op == "InputLayer") for one in (made, *read)]
print(json.dumps([one.energy_j - copied_j for one, copied_j in zip((made, *read), copied)]))
"""
    )
    assert max(joules) < 1.05 * min(joules), joules
    assert min(joules) > 0.01  # J, less than an idle GPU uses in the 128 steps of 1 us each


def test_an_unknown_operation_warns_and_is_printed(python):
    pytest.importorskip("torch")
    result = python(
        """
import warnings
torch = __import__("torch")

class Sorted(torch.nn.Module):
    def forward(self, x):
        return x.sort()[0]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    one = jm.predict(Sorted(), [torch.empty(64, 64)])
print(json.dumps({"warned": [str(each.message) for each in caught], "repr": repr(one), "text": str(one),
                  "open": one.high_j == float("inf"), "bound": one.is_lower_bound, "ops": one.unknown_ops}))
"""
    )
    assert any("lower bound" in text and "aten.sort" in text for text in result["warned"])
    for text in (result["repr"], result["text"]):
        assert "at least" in text and "aten.sort" in text
    assert result["open"] and result["bound"] and result["ops"][0]["op"] == "aten.sort"
