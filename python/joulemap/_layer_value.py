# SPDX-License-Identifier: Apache-2.0
"""jm.layer_value: what each layer of a model costs in joules, and what it earns: how much worse the model is without
it."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import math
import os
import random
import statistics
import sys
from typing import Any, Callable, Optional, Sequence, Union

from ._energy import Energy, _format_number
from ._layer_skip import ModelStateRestorer, observe_layers, skip_module, list_skip_methods
from ._ledger import import_optional
from ._measure import begin
from ._output import replace_file_atomically, escape_csv_cell
from ._torch_probe import first_error_line
from ._validate_blocks import select_blocks, unwrap_model
from ._validate_statistics import _pooled_standard_deviation, t_quantile_95

# Windows below this length are short against the update period of many sensors.
MAX_SHORT_WINDOW_S = 0.5
COST_FIELDS = ("energy_j", "low_j", "high_j")


@dataclasses.dataclass(frozen=True)
class LayerValue:
    """One layer: its cost, and what it earns. Intervals cover 90 %."""

    name: str  # path of the module: "layers.3.attention"
    kind: str  # its class
    parameters: int  # number of its parameters
    skip: str  # how it is skipped: "identity", "zero" or "shrink"
    energy_j: Optional[float]  # energy that it costs, in J: of one evaluation, or in the recording
    low_j: Optional[float]  # lower bound of the interval, in J
    high_j: Optional[float]  # upper bound of the interval, in J
    metric: Optional[float]  # result of evaluate without the layer; None if it is not finite
    earned: Optional[
        float
    ]  # how much worse the result is without the layer; negative if the model is better without it
    earned_low: Optional[float]  # lower bound of the interval; equal to `earned` if evaluate is deterministic
    earned_high: Optional[float]  # upper bound of the interval
    is_front: bool = False  # true if no other layer costs at least as much and earns at most as much: skip it first

    @property
    def joules_per_earned(self) -> Optional[float]:
        """Joules for each unit that the layer earns; None if it costs or earns nothing."""
        is_known = self.energy_j is not None and self.earned is not None and self.energy_j > 0 and self.earned > 0
        return self.energy_j / self.earned if is_known else None  # type: ignore[operator]


_LAYER_VALUE_FIELDS = [field.name for field in dataclasses.fields(LayerValue)]


class LayerValues:
    """The result of layer_value(). Printing it shows a table, sorted by cost per unit earned, highest first."""

    def __init__(
        self, rows: list, baseline: float, provenance: Optional[str], source: str, skip_refusal_reasons: dict, notes: list,
        higher_is_better: bool,
    ) -> None:  # fmt: skip
        self.rows: list = _sort_by_value(_mark_pareto_front(rows))  # a list of LayerValue
        self.baseline = baseline  # result of evaluate with all layers
        self.provenance = provenance  # provenance of the energies: "measured", "estimated" or None
        self.source = source  # source of the energies: "skipping" (energy of one evaluation) or "recording"
        self.refused = skip_refusal_reasons  # layers that cannot be skipped: name -> reason
        self.notes = notes  # what limits the numbers
        self.higher_is_better = higher_is_better  # true if evaluate returns an accuracy rather than a loss

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list:
        """The rows as dictionaries."""
        return [{name: getattr(row, name) for name in _LAYER_VALUE_FIELDS} for row in self.rows]

    def to_pandas(self) -> Any:
        """A DataFrame with the same rows; needs pandas."""
        return import_optional("pandas").DataFrame(self.to_dicts(), columns=_LAYER_VALUE_FIELDS)

    def save(self, path: Any) -> None:
        """Writes a picture of cost against earnings as .svg, a page with picture and table as .html, or the rows as
        .csv."""
        text_by_suffix = {".svg": self.to_svg, ".html": self.to_html, ".csv": self._to_csv}
        make_text = text_by_suffix.get(os.path.splitext(os.fspath(path))[1].lower())
        if make_text is None:
            raise ValueError(f"{os.fspath(path)}: the name must end in .svg, .html or .csv")
        with (
            replace_file_atomically(path) as temporary_path,
            open(temporary_path, "w", encoding="utf-8", newline="") as file,
        ):
            file.write(make_text())

    def to_svg(self) -> str:
        """The picture: one point for each layer with its intervals; the layers to skip first are connected."""
        from ._layer_value_plot import draw_svg

        return draw_svg(self)

    def to_html(self) -> str:
        """A page with the picture and the table, in one file without scripts."""
        from ._layer_value_plot import make_html_page

        return make_html_page(self)

    def _repr_html_(self) -> str:
        from ._layer_value_plot import make_html_body

        return make_html_body(self)

    def _to_csv(self) -> str:
        csv_buffer = io.StringIO(newline="")
        writer = csv.DictWriter(csv_buffer, _LAYER_VALUE_FIELDS)
        writer.writeheader()
        writer.writerows({name: escape_csv_cell(value) for name, value in row.items()} for row in self.to_dicts())
        return csv_buffer.getvalue()

    def title(self) -> str:
        """What the numbers are, in one line."""
        metric_name = "accuracy" if self.higher_is_better else "loss"
        energy_scope = "of one evaluation" if self.source == "skipping" else "in the recording"
        return (
            f"{metric_name} {self.baseline:.4g} with all layers; J {energy_scope}, "
            f"{self.provenance or 'energy unknown'}"
        )

    def table(self) -> list:
        """The cells of the printed table, header row first."""
        earning_title = "accuracy lost" if self.higher_is_better else "loss added"
        header = ["layer", "skipped by", "J", "90 % interval", earning_title, "J per unit", ""]
        return [header, *(_row_cells(row) for row in self.rows)]

    def __str__(self) -> str:
        table_rows = self.table()
        column_widths = [max(len(row[column]) for row in table_rows) for column in range(len(table_rows[0]))]
        lines = [self.title()]
        for row in table_rows:
            padded_cells = [cell.ljust(width) if column < 2 or column == 6 else cell.rjust(width)
                            for column, (cell, width) in enumerate(zip(row, column_widths))]  # fmt: skip
            lines.append("  ".join(padded_cells).rstrip())
        lines += [f"not skipped: {name}: {reason}" for name, reason in self.refused.items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<LayerValues of {len(self.rows)} layers: {self.title()}>"


def _row_cells(row: LayerValue) -> list:
    interval_text = (
        ""
        if row.low_j is None or row.high_j is None
        else f"{_format_number(row.low_j)} .. {_format_number(row.high_j)}"
    )
    earned_text = "not finite" if row.earned is None else f"{row.earned:+.4f}"
    if row.earned is not None and row.earned_low is not None and row.earned_high != row.earned_low:
        earned_text += f" ({row.earned_low:+.4f} .. {row.earned_high:+.4f})"
    joules_per_earned = row.joules_per_earned
    return [row.name, row.skip, "?" if row.energy_j is None else _format_number(row.energy_j), interval_text,
            earned_text, "" if joules_per_earned is None else _format_number(joules_per_earned),
            _verdict_text(row)]  # fmt: skip


def _verdict_text(row: LayerValue) -> str:
    if row.low_j is not None and row.low_j <= 0:
        return "cost uncertain"
    return "skip first" if row.is_front else ""


def _sort_by_value(rows: list) -> list:
    """Joules per unit earned, highest first; layers that earn nothing before all others, in order of their cost."""

    def sort_key(row: LayerValue) -> tuple:
        if row.earned is None or row.energy_j is None:
            return 2, 0.0
        return (0, -row.energy_j) if row.earned <= 0 < row.energy_j else (1, -(row.joules_per_earned or 0.0))

    return sorted(rows, key=sort_key)


def _mark_pareto_front(rows: list) -> list:
    """Marks the Pareto front: layers for which no other one saves at least as much and loses at most as much."""
    known_costs = [(row.energy_j, row.earned) for row in rows if row.energy_j is not None and row.earned is not None]

    def is_front(cost: tuple) -> bool:
        if cost not in known_costs or cost[0] <= 0:
            return False
        return not any(
            other_cost[0] >= cost[0] and other_cost[1] <= cost[1] and other_cost != cost for other_cost in known_costs
        )

    return [dataclasses.replace(row, is_front=is_front((row.energy_j, row.earned))) for row in rows]


class _SkipExperiment:
    """Evaluates a model with each of its blocks skipped. Used inside ModelStateRestorer."""

    def __init__(
        self, torch: Any, model: Any, evaluate: Callable, state_restorer: ModelStateRestorer, blocks: list
    ) -> None:
        self._torch, self._model, self._evaluate, self._state_restorer = torch, model, evaluate, state_restorer
        self._devices = {tensor.device for tensor in model.parameters() if tensor.device.type == "cuda"}
        modules = [module for block in blocks for _, module in block.modules]
        self._observations, self.baseline = observe_layers(modules, self._evaluate_model)
        state_restorer.restore_model()
        if not math.isfinite(self.baseline):
            raise ValueError(f"evaluate returned {self.baseline} with all layers: this result must be finite")
        self.blocks: list = []
        self.refused: dict = {}
        for block in blocks:
            skip_failure = next((self._observations[id(module)].reason for _, module in block.modules), None)
            if skip_failure is None:
                self.blocks.append(block)
            else:
                self.refused[block.name] = skip_failure
        self.skip_method_by_block: dict = {}  # name of a block -> way in which it is skipped
        self.metrics: dict = {}  # name of a block, or None -> results of evaluate

    def _evaluate_model(self) -> float:
        metric = float(self._evaluate(self._model))
        for device in self._devices:
            self._torch.cuda.synchronize(device)
        return metric

    def choose_skip_methods(self, metric_to_loss: Callable) -> None:
        """Skips each block in all possible ways; keeps the one with which the model is best. A block without which the
        model fails is refused."""
        for block in list(self.blocks):
            metric_by_method = {}
            for skip_method in list_skip_methods(self._observations[id(block.modules[0][1])]):
                try:
                    metric_by_method[skip_method] = self.evaluate_without_block(block, skip_method)
                except Exception as error:  # noqa: BLE001 - raised by the model or by evaluate
                    self.refused[block.name] = (
                        f"skipped by {skip_method}, the evaluation fails: {first_error_line(error)}"
                    )
            if not metric_by_method:
                self.blocks.remove(block)
                continue
            self.refused.pop(block.name, None)
            finite_metrics = {
                skip_method: metric for skip_method, metric in metric_by_method.items() if math.isfinite(metric)
            } or metric_by_method
            best_method = min(finite_metrics, key=lambda skip_method: metric_to_loss(finite_metrics[skip_method]))
            self.skip_method_by_block[block.name] = best_method
            self.metrics[block.name] = [metric_by_method[best_method]]

    def evaluate_without_block(self, block: Any, skip_method: str) -> float:
        """Evaluates the model with a block skipped, and restores it."""
        try:
            with contextlib.ExitStack() as skipped_modules:
                for _, module in block.modules:
                    skipped_modules.enter_context(
                        skip_module(self._torch, module, self._observations[id(module)], skip_method)
                    )
                return self._evaluate_model()
        finally:
            self._state_restorer.restore_model()

    def evaluate_full_model(self) -> float:
        try:
            return self._evaluate_model()
        finally:
            self._state_restorer.restore_model()

    def run_rounds(self, rounds: int, seed: int, measures_energy: bool) -> list:
        """Evaluates the model and all variants in random order. Returns, for each round, the energies by name of the
        skipped block; None is the whole model."""
        rng, energies_by_round = random.Random(seed), []
        for _ in range(rounds):
            evaluation_order = [None, *self.blocks]
            rng.shuffle(evaluation_order)
            window_by_name = {}
            for block in evaluation_order:
                name = None if block is None else block.name
                window = begin("evaluate") if measures_energy else None
                metric = (
                    self.evaluate_full_model()
                    if block is None
                    else self.evaluate_without_block(block, self.skip_method_by_block[name])
                )
                if window is not None:
                    window.end()
                    window_by_name[name] = window
                self.metrics.setdefault(name, []).append(metric)
            energies_by_round.append({name: window.wait() for name, window in window_by_name.items()})
        return energies_by_round


def _layer_costs_by_skipping(energies_by_round: list, layer_names: Sequence) -> tuple:
    """(energy_j, low_j, high_j) of each layer: the energy of an evaluation minus that without the layer, paired by
    round; and the provenance. The spread between rounds is pooled over all layers."""
    energies = [energy for energy_by_name in energies_by_round for energy in energy_by_name.values()]
    provenances = {energy.provenance for energy in energies}
    if len(provenances) != 1 or None in provenances or any(energy.joules is None for energy in energies):
        return {}, None
    saved_j_by_layer = {
        layer_name: [
            energy_by_name[None].joules - energy_by_name[layer_name].joules for energy_by_name in energies_by_round
        ]
        for layer_name in layer_names
    }
    pooled_deviation_j, degrees_of_freedom = _pooled_standard_deviation(list(saved_j_by_layer.values()))
    cost_by_layer = {}
    for layer_name, saved_j in saved_j_by_layer.items():
        mean_j = statistics.fmean(saved_j)
        half_width_j = (
            t_quantile_95(degrees_of_freedom) * pooled_deviation_j / math.sqrt(len(saved_j))
            if degrees_of_freedom > 0
            else None
        )
        cost_by_layer[layer_name] = (
            (mean_j, None, None) if half_width_j is None else (mean_j, mean_j - half_width_j, mean_j + half_width_j)
        )
    return cost_by_layer, provenances.pop()


def _layer_costs_from_recording(run: Any, blocks: Sequence, model_class: str) -> tuple:
    """(energy_j, low_j, high_j) of each layer in a recording, summed over passes and devices; and the provenance. Names
    in the recording begin with the class of the model if another model has the same paths."""
    ledger = run.ledger("module")
    cost_by_layer = {}
    for block in blocks:
        module_paths = [name for path, _ in block.modules for name in (path, f"{model_class}.{path}")]
        rows = [
            row for row in ledger.rows if row.energy_j is not None and _is_within_any_path(row.path[-1], module_paths)
        ]
        if rows:
            cost_by_layer[block.name] = tuple(
                _sum_or_none([getattr(row, name) for row in rows]) for name in COST_FIELDS
            )
    return cost_by_layer, ledger.provenance


def _sum_or_none(values: list) -> Optional[float]:
    return None if None in values else sum(values)


def _is_within_any_path(row_name: str, module_paths: Sequence) -> bool:
    return any(row_name == path or row_name.startswith(path + ".") for path in module_paths)


def _mean_metric_and_earning(metrics: list, baselines: list, loss_sign: float) -> tuple:
    """(metric, earned, low, high): means over the rounds, with the 90 % interval of the difference."""
    if not all(map(math.isfinite, metrics)):
        return None, None, None, None
    mean_metric = statistics.fmean(metrics)
    if not all(map(math.isfinite, baselines)):
        return mean_metric, None, None, None
    mean_baseline = statistics.fmean(baselines)
    earned = loss_sign * (mean_metric - mean_baseline)
    pooled_deviation, degrees_of_freedom = _pooled_standard_deviation([metrics, baselines])
    half_width = 0.0
    if degrees_of_freedom > 0 and pooled_deviation > 0:
        half_width = (
            t_quantile_95(degrees_of_freedom) * pooled_deviation * math.sqrt(1 / len(metrics) + 1 / len(baselines))
        )
    return mean_metric, earned, earned - half_width, earned + half_width


def layer_value(
    model: Any,
    evaluate: Callable[[Any], Any],
    *,
    layers: Union[None, Sequence[str], dict] = None,
    run: Any = None,
    higher_is_better: bool = False,
    rounds: int = 3,
    seed: int = 1,
) -> LayerValues:
    """Measures what each layer of `model` costs in joules, and what it earns: how much the result of `evaluate` worsens
    when the layer is skipped.

        values = jm.layer_value(model, lambda model: validation_loss(model))
        print(values)
        values.save("layers.html")

    A layer is skipped by "identity" if its input and output have the same shape. Otherwise its output is "zero", or its
    input, resized to the shape of the output ("shrink"), whichever degrades the model less. Skipping is not removing:
    a model that is trained without the layer can be better. Afterwards the model is unchanged, bit for bit, also after
    an exception: parameters, gradients, buffers, hooks, modes, random states, and attributes that are lists,
    dictionaries or sets (but not objects in them).

    - `model`: a PyTorch module that is not compiled
    - `evaluate`: a function of the model that returns its loss on a fixed set of data, or its accuracy with
      higher_is_better=True
    - `layers`: paths of modules, or {name: [paths]} for several that are skipped together; by default up to 40 children
      of the model, or of its largest modules
    - `run`: a recording (jm.load) whose energies are the costs. By default the cost is the energy that an evaluation
      saves without the layer, measured in `rounds` rounds; an evaluation should then take at least half a second
    - `rounds`: number of evaluations without each layer; `seed`: seed of their random order
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise TypeError(f"jm.layer_value needs a PyTorch module, not a {type(model).__name__}")
    if type(model).__name__ in ("OptimizedModule", "ScriptModule", "RecursiveScriptModule"):
        raise TypeError(f"jm.layer_value needs the modules of a model, which {type(model).__name__} hides: "
                        "pass the original model")  # fmt: skip
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds!r}")
    if run is not None and not hasattr(run, "ledger"):
        raise TypeError(f"run must be a recording, as jm.load() returns it, not {run!r}")
    loss_sign = -1.0 if higher_is_better else 1.0
    with ModelStateRestorer(torch, model) as state_restorer:
        experiment = _SkipExperiment(torch, model, evaluate, state_restorer, select_blocks(unwrap_model(model), layers))
        experiment.choose_skip_methods(lambda metric: loss_sign * metric)
        energies_by_round = experiment.run_rounds(rounds, seed, measures_energy=run is None)
    layer_names = [block.name for block in experiment.blocks]
    cost_by_layer, provenance = (
        _layer_costs_by_skipping(energies_by_round, layer_names)
        if run is None
        else _layer_costs_from_recording(run, experiment.blocks, type(unwrap_model(model)).__name__)
    )
    rows = []
    for block in experiment.blocks:
        module = block.modules[0][1]
        metric_and_earning = _mean_metric_and_earning(
            experiment.metrics[block.name], [experiment.baseline, *experiment.metrics[None]], loss_sign
        )
        parameters = sum(parameter.numel() for _, submodule in block.modules for parameter in submodule.parameters())
        layer_cost = cost_by_layer.get(block.name, (None, None, None))
        rows.append(
            LayerValue(
                block.name,
                type(module).__name__,
                parameters,
                experiment.skip_method_by_block[block.name],
                *layer_cost,
                *metric_and_earning,
            )
        )
    notes = _result_notes(energies_by_round, provenance, cost_by_layer, layer_names)
    if not layer_names and not experiment.refused:
        notes.append("the model has no layers to skip: it contains no other modules")
    if not all(map(math.isfinite, experiment.metrics[None])):
        notes.append("evaluate did not always return a finite result with all layers: what layers earn is unknown")
    energy_source = "skipping" if run is None else "recording"
    baseline = statistics.fmean([experiment.baseline, *experiment.metrics[None]])
    return LayerValues(rows, baseline, provenance, energy_source, experiment.refused, notes, higher_is_better)


def _result_notes(energies_by_round: list, provenance: Optional[str], cost_by_layer: dict, layer_names: list) -> list:
    notes = []
    energies: list = [energy for energy_by_name in energies_by_round for energy in energy_by_name.values()]
    if not cost_by_layer and layer_names:
        notes.append(
            f"energies are unknown: {_unknown_reason(energies) or 'the recording contains none of these layers'}"
        )
    missing_layers = [layer_name for layer_name in layer_names if cost_by_layer and layer_name not in cost_by_layer]
    if missing_layers:
        notes.append(f"the recording contains no energy of {', '.join(missing_layers)}")
    shortest_s = min((energy.seconds for energy in energies if energy.seconds is not None), default=math.inf)
    if shortest_s < MAX_SHORT_WINDOW_S:
        notes.append(f"an evaluation takes {shortest_s:.2g} s: evaluate more data for narrower intervals of the energy")
    if provenance == "estimated":
        notes.append("estimated energies follow CPU time, not which instructions run")
    return notes


def _unknown_reason(energies: Sequence[Energy]) -> str:
    unknown_reasons = [energy.reason for energy in energies if energy.reason]
    provenances = {energy.provenance for energy in energies}
    return (
        unknown_reasons[0]
        if unknown_reasons
        else "a part is measured and a part estimated"
        if len(provenances) > 1
        else ""
    )
