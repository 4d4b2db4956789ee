// SPDX-License-Identifier: Apache-2.0
//
// The section "Loss against energy": the loss or another metric against cumulative
// energy, and the energy of each epoch.
import uPlot from "uplot";
import { collapsibleTable, choiceButtons, readCssProperty, h, pageSection } from "./dom.js";
import { formatDigits, formatJoules, formatCount, formatSeconds, formatTickLabels, formatWithUnit } from "./format.js";
import { ledgerSummaryList } from "./ledger.js";
import { addThemeListener } from "./theme.js";

// Returns a function of time_s: energy used until then in J, summed over the counted domains.
function makeCumulativeEnergy(data) {
  const shown = data.run.measured_j !== null ? "measured" : "estimated";
  const counted = data.power.domains.filter((one) =>
    data.domains.some((domain) => domain.name === one.name && domain.counted && domain.provenance === shown),
  );
  const slices = counted[0]?.values.length ?? 0;
  const sums = [0];
  for (let i = 0; i < slices; ++i)
    sums.push(sums[i] + counted.reduce((sum, one) => sum + (one.values[i] ?? 0), 0) * data.power.slice_s);
  return (time_s) => {
    const at = Math.min(Math.max(time_s / data.power.slice_s, 0), slices);
    const below = Math.min(Math.floor(at), Math.max(slices - 1, 0));
    return sums[below] + (at - below) * ((sums[below + 1] ?? sums[below]) - sums[below]);
  };
}

const firstToLastText = (values) => `from ${formatDigits(values[0], 4)} to ${formatDigits(values[values.length - 1], 4)}`;

export function lossSection(data) {
  // Skips values that are null, such as NaN.
  const metrics = data.metrics
    .map((one) => ({ ...one, points: one.points.filter((point) => point[2] !== null) }))
    .filter((one) => one.points.length > 1);
  if (!metrics.length && data.epochs.length < 1) return null;
  const cumulativeEnergyAt = makeCumulativeEnergy(data);
  const first =
    metrics.find((one) => one.name === "loss") ?? metrics.find((one) => one.name.includes("loss")) ?? metrics[0];
  const state = { metric: first, by: "energy", chart: null };
  const box = h("div", { class: "chart" });
  const draw = () => {
    state.chart?.destroy();
    box.replaceChildren();
    if (state.metric) state.chart = drawMetric(state, box, cumulativeEnergyAt);
  };
  const metricButtons =
    metrics.length > 1
      ? choiceButtons(
          "Metric",
          metrics.map((one) => [one.name, one.name]),
          (name) => {
            state.metric = metrics.find((one) => one.name === name);
            draw();
          },
          first?.name,
        )
      : null;
  const by = first
    ? choiceButtons(
        "Against",
        [
          ["energy", "Energy"],
          ["time", "Time"],
        ],
        (value) => {
          state.by = value;
          draw();
        },
      )
    : null;
  const shown = pageSection(
    "loss",
    first?.name.includes("loss") ? "Loss against energy" : "Metrics against energy",
    first
      ? `${formatCount(first.count, "value")} of ${first.name}, ${firstToLastText(first.points.map((point) => point[2]))}.`
      : null,
    first ? [h("div", { class: "toolbar" }, metricButtons, by), box, metricTable(first, cumulativeEnergyAt)] : null,
    epochTable(data),
    ledgerSummaryList(data, data.levels[0]),
  );
  if (first) {
    shown.addEventListener("shown", () => {
      draw();
      addThemeListener(draw);
      new ResizeObserver(() => state.chart?.setSize({ width: box.clientWidth, height: 240 })).observe(box);
    });
  }
  return shown;
}

function metricTable(metric, cumulativeEnergyAt) {
  const every = Math.max(1, Math.ceil(metric.points.length / 24));
  const rows = metric.points
    .filter((_, index) => index % every === 0)
    .map(([time_s, step, value]) => [
      step ?? "",
      formatSeconds(time_s),
      formatJoules(cumulativeEnergyAt(time_s)),
      formatDigits(value, 4),
    ]);
  return collapsibleTable(`${metric.name} against energy`, ["Step", "Time", "Energy so far", metric.name], rows);
}

function drawMetric(state, box, cumulativeEnergyAt) {
  const { metric } = state;
  const pointsByTime = [...metric.points].sort((a, b) => a[0] - b[0]);
  const xs = pointsByTime.map(([time_s]) => (state.by === "energy" ? cumulativeEnergyAt(time_s) : time_s));
  const ys = pointsByTime.map(([, , value]) => value);
  const axis = {
    stroke: readCssProperty("--quiet"),
    grid: { stroke: readCssProperty("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${readCssProperty("--font")}`,
  };
  const unit = state.by === "energy" ? "J" : "s";
  box.setAttribute("role", "img");
  box.setAttribute(
    "aria-label",
    `${metric.name} against ${state.by}: ${firstToLastText(ys)} over ${formatWithUnit(xs[xs.length - 1], unit)}`,
  );
  return new uPlot(
    {
      width: box.clientWidth,
      height: 240,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false } },
      axes: [
        { ...axis, size: 28, space: 80, values: (_, splits) => formatTickLabels(splits, unit) },
        { ...axis, size: 64, gap: 8, values: (_, splits) => formatTickLabels(splits, "") },
      ],
      series: [
        {},
        {
          stroke: readCssProperty("--line-1"),
          width: 1,
          points: { show: ys.length < 80, size: 5 },
          alpha: ys.length > 100 ? 0.35 : 1,
        },
        { stroke: readCssProperty("--line-1"), width: 2, points: { show: false } },
      ],
    },
    [xs, ys, ys.length > 100 ? movingAverage(ys) : ys.map(() => null)],
    box,
  );
}

// Centred moving average over 1/30 of the values, to show the trend of a noisy loss.
function movingAverage(values) {
  const half = Math.max(2, Math.round(values.length / 60));
  const sums = [0];
  for (const value of values) sums.push(sums[sums.length - 1] + value);
  return values.map((_, i) => {
    const halfWidth = Math.min(half, i, values.length - 1 - i);
    const from = i - halfWidth;
    const to = i + halfWidth + 1;
    return (sums[to] - sums[from]) / (to - from);
  });
}

function epochTable(data) {
  if (!data.epochs.length) return h("p", { class: "unit" }, "No epochs. Mark them with jm.epoch().");
  const most = Math.max(...data.epochs.map((one) => one.energy_j ?? 0));
  const heads = [
    "Epoch",
    "Energy",
    h("span", { class: "hidden" }, "As a bar"),
    "Time",
    "Mean power",
    "Loss",
    "Energy per unit of loss",
  ];
  const cells = (one) => [
    h(
      "th",
      { scope: "row" },
      String(one.number),
      one.count > 1 ? h("span", { class: "unit" }, ` and ${one.count - 1} more`) : null,
    ),
    h("td", { class: "number" }, formatJoules(one.energy_j)),
    h(
      "td",
      { class: "bar-cell", "aria-hidden": "true" },
      h("span", { class: "measure", style: { width: most > 0 ? `${(100 * (one.energy_j ?? 0)) / most}%` : "0" } }),
    ),
    h("td", { class: "number" }, formatSeconds(one.time_s)),
    h(
      "td",
      { class: "number" },
      one.energy_j === null || !(one.time_s > 0) ? "–" : formatWithUnit(one.energy_j / one.time_s, "W"),
    ),
    h("td", { class: "number" }, one.loss === null ? "–" : formatDigits(one.loss, 4)),
    h("td", { class: "number" }, formatJoules(one.joules_per_loss)),
  ];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Epochs" },
    h(
      "table",
      { class: "bars epochs" },
      h("caption", { class: "hidden" }, "Energy, loss, and energy per unit of loss of each epoch"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, index) => h("th", { scope: "col", class: index === 0 ? null : "number" }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        data.epochs.map((one) => h("tr", {}, cells(one))),
      ),
    ),
  );
}
