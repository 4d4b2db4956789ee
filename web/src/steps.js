// SPDX-License-Identifier: Apache-2.0
//
// The section "Steps": a bar for the energy of each step; for the selected step,
// its layers and what the GPU waited for.
import { h, pageSection } from "./dom.js";
import { formatJoules, formatPercent, formatCount, formatSeconds, formatWatts, formatInteger } from "./format.js";
import { ledgerSummaryList } from "./ledger.js";
import { shortNameElement, shortNamesOfRows } from "./names.js";
import { makeStepChart } from "./step_chart.js";
import { idleCauseText } from "./waiting.js";

// Index of the bar that contains the step of `detail`; -1 if there is none. If step numbers repeat, the nearest in
// time.
function barIndexOfStepDetail(detail, steps) {
  let best = -1;
  steps.forEach((step, index) => {
    if (detail.number < step.number || detail.number >= step.number + step.count) return;
    const distance = (at) => Math.abs(steps[at].begin_s - detail.begin_s);
    if (best < 0 || distance(index) < distance(best)) best = index;
  });
  return best;
}

function stepDetailsByBar(data) {
  const detailByBar = new Map();
  for (const detail of data.step_details) {
    const bar = barIndexOfStepDetail(detail, data.steps);
    if (bar >= 0 && !detailByBar.has(bar)) detailByBar.set(bar, detail);
  }
  return detailByBar;
}

function computeMedian(values) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known.length ? known[Math.floor(known.length / 2)] : null;
}

function indexOfLargest(steps, value, isCandidate = () => true) {
  let most = -1;
  steps.forEach((step, index) => {
    if (isCandidate(index) && (most < 0 || (value(step) ?? 0) > (value(steps[most]) ?? 0))) most = index;
  });
  return most;
}

const capitalize = (text) => text[0].toUpperCase() + text.slice(1);
const valuePerStep = (step, value) => (value === null ? null : value / step.count);
const stepTitle = (step) =>
  step.count > 1 ? `Steps ${step.number} to ${step.number + step.count - 1}` : `Step ${step.number}`;

export function stepsSection(data) {
  if (data.steps.length < 2) return null;
  const details = stepDetailsByBar(data);
  const context = {
    data,
    details,
    shorter: shortNamesOfRows(data.step_details.flatMap((detail) => detail.layers)),
    median_j: computeMedian(data.steps.map((step) => valuePerStep(step, step.energy_j))),
    median_s: computeMedian(data.steps.map((step) => valuePerStep(step, step.time_s))),
  };
  const energy = (step) => valuePerStep(step, step.energy_j);
  const time = (step) => valuePerStep(step, step.time_s);
  const hasEnergy = data.steps.some((step) => step.energy_j !== null);
  const value = hasEnergy ? energy : time;
  const hasDetail = (index) => details.has(index);
  let selected = indexOfLargest(data.steps, value, details.size ? hasDetail : undefined);
  const panel = h("div", { class: "step-panel" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(data.steps.length - 1),
    class: "step-slider",
    "aria-label": "Step",
    oninput: (event) => select(Number(event.target.value)),
  });
  const chart = makeStepChart(data.steps, {
    value,
    unit: hasEnergy ? "J" : "s",
    hasDetail,
    select: (index) => select(index),
  });
  const select = (index) => {
    selected = Math.max(0, Math.min(index, data.steps.length - 1));
    const step = data.steps[selected];
    slider.value = String(selected);
    slider.setAttribute(
      "aria-valuetext",
      `${stepTitle(step)}: ${formatJoules(step.energy_j)}, ${formatSeconds(step.time_s)}`,
    );
    chart.paint(selected);
    panel.replaceChildren(...stepPanel(context, selected, select));
  };
  const button = (text, act) => h("button", { type: "button", onclick: act }, text);
  const selectNextDetail = (sign) => {
    for (let at = selected + sign; at >= 0 && at < data.steps.length; at += sign) {
      if (hasDetail(at)) return select(at);
    }
    return undefined;
  };
  const shown = pageSection(
    "steps",
    "Steps",
    leadSentence(data, hasEnergy),
    h(
      "div",
      { class: "toolbar" },
      h(
        "div",
        { class: "buttons" },
        hasEnergy ? button("Most energy", () => select(indexOfLargest(data.steps, energy))) : null,
        button("Longest", () => select(indexOfLargest(data.steps, time))),
        details.size ? button("← With layers", () => selectNextDetail(-1)) : null,
        details.size ? button("With layers →", () => selectNextDetail(1)) : null,
      ),
    ),
    chart.element,
    slider,
    panel,
    ledgerSummaryList(data, data.level("phase") ?? data.levels[0]),
  );
  select(selected);
  shown.addEventListener("select-step", (event) => {
    select(event.detail);
    slider.focus();
  });
  shown.addEventListener("shown", () => chart.start(() => selected));
  return shown;
}

function leadSentence(data, hasEnergy) {
  const what = hasEnergy ? "Energy of the whole machine" : "Time";
  const first = `${what} per step. Click a bar, or move the slider with the arrow keys.`;
  if (!data.step_details.length)
    return `${first} This recording has no kernel records of single steps, so their layers are unknown.`;
  const total = data.steps.reduce((sum, step) => sum + step.count, 0);
  return (
    `${first} Kernels of ${formatInteger(data.detailed_steps)} of ${formatCount(total, "step")} were recorded one by one; ` +
    `this page contains the layers of ${formatInteger(data.step_details.length)}, marked below the bars.`
  );
}

function stepPanel(context, index, select) {
  const step = context.data.steps[index];
  const detail = context.details.get(index);
  return [
    h("h3", {}, stepTitle(step)),
    h("p", { class: "step-facts" }, stepSummaryText(context, step)),
    ...(detail ? stepDetailTables(context, step, detail) : [missingStepDetailNote(context, index, select)]),
  ];
}

function medianComparisonText(value, median) {
  if (value === null || !(median > 0)) return "";
  const share = value / median - 1;
  if (Math.abs(share) < 0.0005) return ", the median";
  return `, ${formatPercent(Math.abs(share))} ${share > 0 ? "above" : "below"} the median`;
}

function stepSummaryText(context, step) {
  const each = step.count > 1 ? " per step" : "";
  const [energy_j, time_s] = [valuePerStep(step, step.energy_j), valuePerStep(step, step.time_s)];
  const parts = [];
  if (energy_j !== null)
    parts.push(`${formatJoules(energy_j)}${each}${medianComparisonText(energy_j, context.median_j)}`);
  parts.push(`${formatSeconds(time_s)}${each}${medianComparisonText(time_s, context.median_s)}`);
  if (energy_j !== null && time_s > 0) parts.push(formatWatts(energy_j / time_s));
  if (step.loss !== null) parts.push(`loss ${step.loss.toPrecision(4)}`);
  return parts.join(" · ");
}

function missingStepDetailNote(context, index, select) {
  if (!context.details.size) return h("p", { class: "unit" }, "Layers of this step are unknown.");
  const nearest = [...context.details.keys()].reduce((a, b) => (Math.abs(b - index) < Math.abs(a - index) ? b : a));
  return h(
    "p",
    { class: "unit" },
    "Layers of this step are not in this page: its kernels were not traced, or it is none of the chosen steps. ",
    h(
      "button",
      { type: "button", class: "more", onclick: () => select(nearest) },
      `Show ${stepTitle(context.data.steps[nearest]).toLowerCase()}, the nearest with layers`,
    ),
  );
}

function stepDetailTables(context, step, detail) {
  const length_s = detail.gpu_end_s - detail.gpu_begin_s;
  const devices = new Set([...detail.layers, ...detail.waits].map((one) => one.device)).size || 1;
  const idle_s = detail.waits.reduce((sum, wait) => sum + wait.time_s, 0);
  const name = `step ${detail.number}`;
  const started = step.count > 1 ? ` Of these steps, the page contains the layers of ${name}.` : "";
  return [
    h(
      "p",
      { class: "step-facts" },
      `On the GPU, ${name} took ${formatSeconds(length_s)} with ${formatCount(detail.kernels, "kernel")}; `,
      `it was idle for ${formatSeconds(idle_s)} `,
      `(${formatPercent(length_s > 0 ? idle_s / (length_s * devices) : null)}).${started}`,
    ),
    h("div", { class: "step-tables" }, stepLayerTable(context, detail, name), idleCauseTable(detail, name)),
  ];
}

function stepDetailTable(caption, heads, rows, footerCells) {
  const cell = (content, index) =>
    h(index ? "td" : "th", { class: index > 1 ? "number" : null, scope: index ? null : "row" }, content);
  const line = (row) => h("tr", {}, row.map(cell));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "step-caption" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, index) => h("th", { scope: "col", class: index > 1 ? "number" : null }, head)),
        ),
      ),
      h("tbody", {}, rows.map(line)),
      footerCells ? h("tfoot", {}, line(footerCells)) : null,
    ),
  );
}

function stepLayerTable(context, detail, name) {
  const gpu_j = detail.other_j + [...detail.layers, ...detail.waits].reduce((sum, one) => sum + (one.energy_j ?? 0), 0);
  const share = (energy_j) => formatPercent(gpu_j > 0 ? energy_j / gpu_j : null);
  const path = (layer) => [
    h(
      "span",
      { class: "path" },
      layer.path.slice(0, -1).map((part) => `${part} `),
    ),
    shortNameElement(layer.path[layer.path.length - 1], context.shorter),
  ];
  const rows = detail.layers.map((layer) => [
    h("span", { title: layer.path.join(" › ") }, path(layer)),
    layer.device,
    formatSeconds(layer.time_s),
    formatJoules(layer.energy_j),
    share(layer.energy_j),
  ]);
  const footerCells =
    detail.other_s > 0
      ? [
          detail.other_layers ? `${formatCount(detail.other_layers, "other layer")}` : "outside of layers",
          "",
          formatSeconds(detail.other_s),
          formatJoules(detail.other_j),
          share(detail.other_j),
        ]
      : null;
  const columns = ["Layer", "Device", "GPU time", "Energy", "Share"];
  return stepDetailTable(`${capitalize(name)}: layers`, columns, rows, footerCells);
}

function idleCauseTable(detail, name) {
  if (!detail.waits.length) return h("p", { class: "unit" }, "The GPU did not wait in this step.");
  const rows = detail.waits.map((wait) => [
    idleCauseText(wait.cause, wait.device),
    wait.device,
    formatSeconds(wait.time_s),
    formatJoules(wait.energy_j),
  ]);
  return h(
    "div",
    {},
    stepDetailTable(`${capitalize(name)}: what the GPU waited for`, ["Cause", "Device", "Time", "Energy"], rows),
    h(
      "p",
      { class: "unit step-method" },
      "The idle time is that between kernels of the step. Causes are recorded for intervals of up to a second; their " +
        "proportions apply to the step.",
    ),
  );
}
