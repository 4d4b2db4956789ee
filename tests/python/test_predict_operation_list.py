"""PyTorch modules as lists of operations: without data or execution, with every gradient assigned to its layer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _predict.operation_list import list_operations  # noqa: E402

nn = torch.nn


def small_cnn():
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8 * 16, 10))


def image(batch: int = 4):
    return torch.empty(batch, 3, 8, 8, device="meta")


def result(operation: dict) -> tuple:
    return operation["layer"], operation["kind"], operation["form"], operation["pass"]


def select_phase_operations(operation_list: dict, phase: str) -> list[tuple]:
    """Operations of a phase, without views, which launch nothing, and without the fill of the first gradient."""
    phase_operations = [
        operation
        for operation in operation_list["operations"]
        if operation["phase"] == phase and operation["kind"] != "view"
    ]
    return [result(operation) for operation in phase_operations if operation["form"] != "fill"]


def only_operation(operation_list: dict, **expected_fields) -> dict:
    matching_operations = [
        operation
        for operation in operation_list["operations"]
        if all(operation[key] == value for key, value in expected_fields.items())
    ]
    assert len(matching_operations) == 1, matching_operations
    return matching_operations[0]


def count_flops(operation: dict) -> int:
    p, kind = operation["parameters"], operation["kind"]
    if kind == "dense":
        flop_count = 2 * p["rows"] * p["in"] * p["out"]
    elif kind == "bmm":
        flop_count = 2 * p["batch"] * p["m"] * p["k"] * p["n"]
    elif kind == "attention":
        flop_count = 4 * p["batch"] * p["heads"] * p["queries"] * p["keys"] * p["width"]
    elif kind == "convolution":
        kernel_extent = p["dilation"] * (p["kernel"] - 1) + 1
        height, width = (
            (p[side] + 2 * p["padding"] - kernel_extent) // p["stride"] + 1 for side in ("height", "width")
        )
        flop_count = 2 * p["batch"] * height * width * p["out"] * (p["channels"] // p["groups"]) * p["kernel"] ** 2
    else:
        return 0
    return flop_count * (2 if operation["pass"] == "backward" else 1)


def test_inference_of_a_small_network_is_its_layers_in_order():
    operation_list = list_operations(small_cnn(), (image(),))
    assert select_phase_operations(operation_list, "forward") == [
        ("0", "convolution", "", "forward"),
        ("1", "normalization", "batch-inference", "forward"),
        ("2", "activation", "relu", "forward"),
        ("3", "pooling", "max", "forward"),
        ("5", "dense", "", "forward"),
    ]
    assert only_operation(operation_list, kind="dense")["parameters"] == {"rows": 4, "in": 128, "out": 10, "bias": 1}
    convolution = only_operation(operation_list, kind="convolution")["parameters"]
    assert convolution == {
        **{"batch": 4, "channels": 3, "out": 8, "height": 8, "width": 8, "kernel": 3, "stride": 1, "padding": 1},
        **{"dilation": 1, "groups": 1, "bias": 1, "channels_last": 0},
    }
    assert (operation_list["weight_tensors"], operation_list["unknown"]) == (6, [])


def test_a_trace_is_ready_for_json():
    operation_list = list_operations(small_cnn(), (image(),), training=True, optimizer="adamw")
    assert json.loads(json.dumps(operation_list)) == operation_list
    assert (operation_list["schema"], operation_list["format"], operation_list["pass"]) == (
        "joulemap.operations/1",
        "torch",
        "training",
    )


def test_gradients_are_one_operation_of_the_layer_that_they_belong_to():
    operation_list = list_operations(small_cnn(), (image(),), training=True, optimizer="momentum")
    assert select_phase_operations(operation_list, "backward") == [
        ("", "loss", "", "backward"),
        ("5", "dense", "", "backward"),
        ("3", "pooling", "max", "backward"),
        ("2", "activation", "relu", "backward"),
        ("1", "normalization", "batch", "backward"),
        ("0", "convolution", "", "backward-weights"),
    ]


def test_the_optimizer_steps_over_the_weights_that_got_a_gradient():
    model = small_cnn()
    model[0].weight.requires_grad_(False)
    elements = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    step = only_operation(list_operations(model, (image(),), training=True, optimizer="momentum"), kind="optimizer")
    assert step["form"] == "momentum" and step["pass"] == "optimizer"
    assert step["parameters"] == {"tensors": 5, "elements": elements, "fused": 0, "foreach": 1}


@pytest.mark.parametrize(
    ("make", "form", "fused", "foreach"),
    [
        (lambda weights: torch.optim.SGD(weights, lr=0.1), "sgd", 0, 1),
        (lambda weights: torch.optim.AdamW(weights, foreach=False), "adamw", 0, 0),
        (lambda weights: torch.optim.Adam(weights, fused=True), "adam", 1, 0),
    ],
)
def test_optimizers_of_pytorch_are_recognized(make, form, fused, foreach):
    model = small_cnn()
    step = only_operation(
        list_operations(model, (image(),), training=True, optimizer=make(model.parameters())), kind="optimizer"
    )
    assert (step["form"], step["parameters"]["fused"], step["parameters"]["foreach"]) == (form, fused, foreach)


def test_an_optimizer_that_was_not_measured_is_listed_as_unknown():
    model = small_cnn()
    operation_list = list_operations(
        model, (image(),), training=True, optimizer=torch.optim.Adagrad(model.parameters())
    )
    assert operation_list["unknown"][0]["source"] == "torch.optim.Adagrad"
    assert only_operation(operation_list, kind="unknown")["pass"] == "optimizer"


def test_weights_that_are_frozen_leave_the_gradient_of_the_input():
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 8))
    for parameter in model[1].parameters():
        parameter.requires_grad_(False)
    operation_list = list_operations(model, (torch.empty(4, 16, device="meta"),), training=True)
    gradient = only_operation(operation_list, kind="dense", layer="1", phase="backward")
    assert (gradient["pass"], gradient["parameters"]) == ("forward", {"rows": 4, "in": 8, "out": 32, "bias": 0})
    assert only_operation(operation_list, kind="dense", layer="0", phase="backward")["pass"] == "backward-weights"


def test_dropout_is_one_kernel_as_on_a_gpu():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    operation_list = list_operations(model, (torch.empty(4, 8, device="meta"),), training=True)
    dropout_passes = [operation["pass"] for operation in operation_list["operations"] if operation["kind"] == "dropout"]
    assert dropout_passes == ["forward", "backward"]
    inference = list_operations(model, (torch.empty(4, 8, device="meta"),))
    assert "dropout" not in {operation["kind"] for operation in inference["operations"]}


@pytest.mark.parametrize("make", [nn.SiLU, nn.ReLU6, nn.Hardswish, nn.Mish, nn.ELU, nn.LeakyReLU, nn.ReLU])
def test_in_place_operations_have_gradients(make):
    model = nn.Sequential(nn.Linear(8, 8), make(inplace=True), nn.Linear(8, 4))
    operation_list = list_operations(model, (torch.empty(2, 8, device="meta"),), training=True)
    activation_operations = [
        operation
        for operation in operation_list["operations"]
        if operation["kind"] == "activation" and operation["form"] != "fill"
    ]
    assert [(operation["layer"], operation["pass"]) for operation in activation_operations] == [
        ("1", "forward"),
        ("1", "backward"),
    ]
    assert not operation_list["unknown"]


def test_a_module_that_is_called_twice_counts_twice():
    class ReusedLayerNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            return self.inner(self.inner(x))

    operation_list = list_operations(ReusedLayerNetwork(), (torch.empty(2, 8, device="meta"),), training=True)
    dense_operations = [result(operation) for operation in operation_list["operations"] if operation["kind"] == "dense"]
    assert dense_operations == [
        ("inner", "dense", "", "forward"),
        ("inner", "dense", "", "forward"),
        ("inner", "dense", "", "backward"),
        ("inner", "dense", "", "backward-weights"),
    ]
    # The two gradients of the shared weight are added, and so are those of the bias.
    assert [result(operation)[1:] for operation in operation_list["operations"] if operation["kind"] == "add"] == [
        ("add", "same", "forward")
    ] * 2


def test_nothing_is_allocated():
    with torch.device("meta"):
        model = nn.Linear(2**20, 2**20)
    operation_list = list_operations(model, (torch.empty(1, 2**20, device="meta"),), training=True, optimizer="adam")
    assert operation_list["weight_elements"] == 2**40 + 2**20
    assert only_operation(operation_list, kind="optimizer")["parameters"]["elements"] == 2**40 + 2**20


def test_the_model_is_as_it_was():
    model = small_cnn().eval()
    initial_state = {name: (id(tensor), tensor.clone()) for name, tensor in model.state_dict(keep_vars=True).items()}
    list_operations(model, (torch.randn(4, 3, 8, 8),), training=True, optimizer="sgd")
    final_state = model.state_dict(keep_vars=True)
    for name, (number, value) in initial_state.items():
        assert id(final_state[name]) == number and torch.equal(final_state[name], value)
    assert not model.training and all(parameter.grad is None for parameter in model.parameters())
    assert model(torch.randn(4, 3, 8, 8)).shape == (4, 10)


def test_a_trace_that_fails_leaves_the_model_as_it_was():
    model = small_cnn()
    with pytest.raises(RuntimeError):
        list_operations(model, (torch.empty(4, 5, 8, 8, device="meta"),))
    assert torch.isfinite(model(torch.randn(4, 3, 8, 8))).all()
    assert torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 1, 2, 4)] * 3).sum() == 8


def test_custom_operations_are_listed_with_bounds():
    library = torch.library.Library("acme", "DEF")
    library.define("mystery(Tensor x) -> Tensor")
    library.impl("mystery", lambda x: torch.empty(*x.shape, 2), "CPU")
    library.impl("mystery", lambda x: x.new_empty(*x.shape, 2), "Meta")

    class UnknownOperationNetwork(nn.Module):
        def forward(self, x):
            return torch.ops.acme.mystery(x)

    operation_list = list_operations(UnknownOperationNetwork(), (torch.empty(3, 5, device="meta"),))
    reason = "an operation of the library acme"
    assert operation_list["unknown"] == [{"layer": "", "source": "acme.mystery", "reason": reason, "bounded": True}]
    size = only_operation(operation_list, kind="unknown")["parameters"]
    assert (size["in"], size["out"]) == (15, 30)


@pytest.mark.parametrize(
    ("dtype", "convolution", "product"),
    [("default", "tf32", "fp32"), ("tf32", "tf32", "tf32"), ("fp32", "fp32", "fp32")],
)
def test_products_use_the_requested_precision(dtype, convolution, product):
    operation_list = list_operations(small_cnn(), (image(),), precision=dtype)
    assert only_operation(operation_list, kind="convolution")["dtype"] == convolution
    assert only_operation(operation_list, kind="dense")["dtype"] == product
    assert only_operation(operation_list, kind="activation")["dtype"] == "fp32"


def test_autocast_uses_the_rules_of_a_gpu():
    class MixedPrecisionNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4)

        def forward(self, x):
            return torch.softmax(self.last(self.norm(self.first(x))), -1)

    operation_list = list_operations(
        MixedPrecisionNetwork(), (torch.empty(2, 8, device="meta"),), autocast=torch.bfloat16
    )
    assert {operation["dtype"] for operation in operation_list["operations"] if operation["kind"] == "dense"} == {
        "bf16"
    }
    assert only_operation(operation_list, kind="normalization")["dtype"] == "fp32"
    # Autocast casts the norm's input; the softmax casts internally.
    assert [
        operation["layer"]
        for operation in operation_list["operations"]
        if (operation["kind"], operation["form"]) == ("cast", "fp32")
    ] == ["norm"]


def test_channels_last_images_are_recorded():
    x = torch.empty(4, 3, 8, 8, device="meta").to(memory_format=torch.channels_last)
    assert only_operation(list_operations(small_cnn(), (x,)), kind="convolution")["parameters"]["channels_last"] == 1


@pytest.mark.parametrize(
    ("second", "form", "width"), [((4, 6, 8), "same", 8), ((8,), "last", 8), ((4, 6, 1), "row", 8), ((1,), "scalar", 8)]
)
def test_addition_records_the_form_of_its_second_operand(second, form, width):
    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    add_operation = only_operation(list_operations(Sum(), (torch.empty(4, 6, 8), torch.empty(second))), kind="add")
    assert (add_operation["form"], add_operation["parameters"]) == (form, {"batch": 4, "rows": 6, "width": width})


@pytest.mark.parametrize("training", [False, True])
def test_products_and_convolutions_have_the_arithmetic_that_pytorch_counts(training):
    from torch.utils.flop_counter import FlopCounterMode

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.Flatten(2), nn.Linear(49, 32),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True), 2),
    )  # fmt: skip
    model, x = model.train(training).to("meta"), torch.empty(2, 3, 16, 16, device="meta")
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        output = model(x)
        if training:
            output.sum().backward()
    operation_list = list_operations(model, (x,), training=training, loss=lambda output: output.sum())
    assert sum(map(count_flops, operation_list["operations"])) == pytest.approx(counter.get_total_flops(), rel=0.01)


class ModelWithCachedPositions(nn.Module):
    """Computes its positions in the first call, reads their values and caches them, as real networks do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.positions = None

    def forward(self, x):
        if self.positions is None:
            self.positions = torch.arange(8.0).exp().sin()
            assert self.positions.isfinite().all() in (True, False)
        return self.layer(x + self.positions)


@pytest.mark.parametrize("training", [False, True])
def test_cached_state_of_a_module_is_not_part_of_a_pass(training):
    model = ModelWithCachedPositions()
    operation_list = list_operations(model, [torch.empty(4, 8, device="meta")], training=training)
    assert [kind for _, kind, _, _ in select_phase_operations(operation_list, "forward")][:2] == ["add", "dense"]
    assert model.positions is None


@pytest.mark.parametrize("enter_mode", [torch.inference_mode, lambda: torch.device("meta"), torch.no_grad])
def test_modes_around_the_trace_do_not_change_it(enter_mode):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
    x = torch.empty(2, 8, device="meta")
    expected_operation_list = list_operations(model, [x])
    with enter_mode():
        assert list_operations(model, [x]) == expected_operation_list
        assert list_operations(model, [x], training=True)["operations"]


def test_the_default_device_is_restored():
    with torch.device("meta"):
        list_operations(nn.Linear(8, 8), [torch.empty(2, 8)])
        assert torch.empty(1).device.type == "meta"
    assert torch.empty(1).device.type == "cpu"


def test_modules_that_enter_inference_mode_have_known_operations():
    class InferenceNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        @torch.inference_mode()
        def forward(self, x):
            x = nn.functional.scaled_dot_product_attention(x, x, x)
            return torch.softmax(self.layer(x), -1)

    operation_list = list_operations(InferenceNetwork(), [torch.empty(2, 2, 4, 8, device="meta")])
    assert operation_list["unknown"] == []
    kinds = [operation["kind"] for operation in operation_list["operations"] if operation["kind"] != "view"]
    assert kinds == ["attention", "dense", "activation"]


@pytest.mark.parametrize("precision", ["int4", "fp16", "bf16"])
def test_a_precision_that_modules_do_not_have_is_refused(precision):
    with pytest.raises(ValueError, match=f"not {precision}; .*autocast=torch.bfloat16"):
        list_operations(small_cnn(), (image(),), precision=precision)


class NetworkThatReadsValues(nn.Module):
    def forward(self, x):
        return x * x.mean().item()


class NetworkThatSelectsRows(nn.Module):
    def forward(self, x):
        return x[torch.nonzero(x[:, 0])]


@pytest.mark.parametrize("network", [NetworkThatReadsValues, NetworkThatSelectsRows])
def test_operations_that_depend_on_values_are_refused_with_a_remedy(network):
    with pytest.raises(ValueError, match="depend on values .*joulemap record"):
        list_operations(network(), [torch.randn(4, 8)])


def test_modules_without_visible_operations_are_refused_with_a_remedy():
    linear = nn.Sequential(nn.Linear(8, 8))
    x = torch.randn(2, 8)
    with pytest.raises(ValueError, match="TorchScript module .*that it was made of"):
        list_operations(torch.jit.script(linear), [x])
    if hasattr(torch, "export"):
        with pytest.raises(ValueError, match="pass the module that was exported"):
            list_operations(torch.export.export(linear, (x,)).module(), [x])
    with pytest.raises(TypeError, match="must be a PyTorch module, not a int"):
        list_operations(3, [x])


@pytest.mark.filterwarnings("ignore")
def test_quantized_modules_are_refused_with_a_remedy():
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 8)), {nn.Linear})
    with pytest.raises(ValueError, match="before quantization"):
        list_operations(model, [torch.randn(2, 8)])


def test_an_output_without_classes_needs_a_loss():
    model = nn.Sequential(nn.Linear(8, 1), nn.Flatten(0))
    with pytest.raises(ValueError, match="has the shape \\[4\\]: .*loss="):
        list_operations(model, [torch.randn(4, 8)], training=True)
    assert list_operations(model, [torch.randn(4, 8)], training=True, loss=lambda output: output.mean())
