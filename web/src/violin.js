// SPDX-License-Identifier: Apache-2.0
// The section "Variation between steps": distribution of the energy of each layer over the steps, one violin each.
import { collapsibleTable, choiceButtons, h, pageSection, svgElement } from "./dom.js";
import { formatJoules, formatTickLabels as tickTexts, formatInteger } from "./format.js";
import { colourProperty, ledgerSummaryList } from "./ledger.js";
import { findPhase } from "./data.js";
import { shortNameElement, shortNamesOfRows } from "./names.js";

const ROW_HEIGHT_PX = 30;
const DENSITY_POINTS = 60;
const INITIAL_VIOLIN_COUNT = 15;

export function violinsSection(data) {
  if (!data.spreads.length) return null;
  const box = h("div", { class: "violins" });
  const draw = (most) =>
    box.replaceChildren(...(data.spreads.slice(0, most).length ? [drawViolins(data.spreads.slice(0, most))] : []));
  const options = [[String(INITIAL_VIOLIN_COUNT), `${Math.min(INITIAL_VIOLIN_COUNT, data.spreads.length)} largest`]];
  if (data.spreads.length > INITIAL_VIOLIN_COUNT) options.push([String(data.spreads.length), `All ${data.spreads.length}`]);
  draw(INITIAL_VIOLIN_COUNT);
  const hasStepSpreads = data.spreads.some((one) => one.per === "step");
  const lead = hasStepSpreads
    ? "Energy of a layer in each step, from the kernels it launched. Line: quartiles, dot: median."
    : "Energy of a call, as means over time intervals. Line: quartiles, dot: median.";
  return pageSection(
    "violins",
    "Variation between steps",
    lead,
    options.length > 1
      ? h(
          "div",
          { class: "toolbar" },
          choiceButtons("Layers shown", options, (value) => draw(Number(value))),
        )
      : null,
    box,
    collapsibleTable(
      "Energy of layers per step",
      ["Layer", "Per", "Samples", "P5", "P25", "Median", "P75", "P95"],
      data.spreads.map((one) => [
        one.path.join(" "),
        one.per,
        formatInteger(one.samples),
        ...[5, 25, 50, 75, 95].map((at) => formatJoules(one.quantiles_j[at])),
      ]),
    ),
    ledgerSummaryList(data, data.level("layer")),
  );
}

// Gaussian kernel density estimate from the 101 quantiles, with Silverman's bandwidth. Returns [energy_j, density]
// points; the density is not normalized.
export function kernelDensity(quantiles) {
  const [low, high] = [quantiles[1], quantiles[quantiles.length - 2]];
  const inner = quantiles.slice(1, -1);
  const mean = inner.reduce((sum, value) => sum + value, 0) / inner.length;
  const deviation = Math.sqrt(inner.reduce((sum, value) => sum + (value - mean) ** 2, 0) / inner.length);
  const robust = (quantiles[75] - quantiles[25]) / 1.34;
  const spread = Math.min(deviation, robust > 0 ? robust : deviation);
  const width = Math.max(0.9 * spread * inner.length ** -0.2, (high - low) / DENSITY_POINTS, high * 1e-6, 1e-12);
  const from = Math.max(low - 2 * width, 0);
  const to = high + 2 * width;
  return Array.from({ length: DENSITY_POINTS + 1 }, (_, i) => {
    const at = from + ((to - from) * i) / DENSITY_POINTS;
    const sum = inner.reduce((all, value) => all + Math.exp(-(((at - value) / width) ** 2) / 2), 0);
    return [at, sum];
  });
}

// Axis ticks from 0 to `most`, at multiples of 1, 2 or 5 times a power of ten.
function chooseTickValues(most) {
  const roughStep = most / 5;
  const power = 10 ** Math.floor(Math.log10(roughStep));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= roughStep);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

function drawViolins(spreads) {
  const most = Math.max(...spreads.map((one) => one.quantiles_j[99])) * 1.05 || 1;
  const height = spreads.length * ROW_HEIGHT_PX;
  const x = (value) => (1000 * Math.min(value, most)) / most;
  const ticks = chooseTickValues(most);
  const grid = ticks.map((tick) =>
    svgElement("line", {
      class: "grid",
      x1: x(tick),
      x2: x(tick),
      y1: 0,
      y2: height,
      "vector-effect": "non-scaling-stroke",
    }),
  );
  const shapes = spreads.map((one, index) => drawViolin(one, x, index * ROW_HEIGHT_PX + ROW_HEIGHT_PX / 2));
  const picture = svgElement(
    "svg",
    {
      viewBox: `0 0 1000 ${height}`,
      preserveAspectRatio: "none",
      height,
      role: "img",
      "aria-label": violinsDescription(spreads),
    },
    grid,
    shapes,
  );
  const shorter = shortNamesOfRows(spreads);
  const names = spreads.map((one) =>
    h(
      "li",
      { title: one.path.join(" › ") },
      h("span", { class: "path" }, `${one.path.slice(0, -1).join(" ")} `),
      shortNameElement(one.path[one.path.length - 1], shorter),
    ),
  );
  const medians = spreads.map((one) => h("li", {}, formatJoules(one.quantiles_j[50])));
  const axis = h(
    "div",
    { class: "axis", "aria-hidden": "true" },
    tickTexts(ticks, "J").map((text, index) => h("span", { style: { left: `${x(ticks[index]) / 10}%` } }, text)),
  );
  return h(
    "div",
    { class: "violin-grid" },
    h("ul", { class: "violin-names", "aria-hidden": "true" }, names),
    h("div", { class: "violin-plot" }, picture, axis),
    h("ul", { class: "violin-medians", "aria-hidden": "true" }, medians),
  );
}

function drawViolin(one, x, centre) {
  const curve = kernelDensity(one.quantiles_j);
  const maxDensity = Math.max(...curve.map(([, height]) => height));
  const half = (height) => (height / maxDensity) * (ROW_HEIGHT_PX / 2 - 3);
  const above = curve.map(([at, height]) => `${x(at).toFixed(2)},${(centre - half(height)).toFixed(2)}`);
  const below = curve.map(([at, height]) => `${x(at).toFixed(2)},${(centre + half(height)).toFixed(2)}`).reverse();
  const [, quarter, median, threeQuarters] = [0, 25, 50, 75].map((at) => one.quantiles_j[at]);
  const colour = `var(${colourProperty(findPhase(one.path))})`;
  return svgElement(
    "g",
    { style: { color: colour } },
    svgElement(
      "title",
      {},
      `${one.path.join(" ")}: median ${formatJoules(median)} per ${one.per}, quartiles ${formatJoules(quarter)} to ` +
        `${formatJoules(threeQuarters)}, ${formatInteger(one.samples)} samples`,
    ),
    svgElement("polygon", { points: [...above, ...below].join(" "), "vector-effect": "non-scaling-stroke" }),
    svgElement("line", {
      class: "interquartile",
      x1: x(quarter),
      x2: x(threeQuarters),
      y1: centre,
      y2: centre,
      "vector-effect": "non-scaling-stroke",
    }),
    svgElement("line", {
      class: "median",
      x1: x(median),
      x2: x(median) + 0.01,
      y1: centre,
      y2: centre,
      "vector-effect": "non-scaling-stroke",
    }),
  );
}

function violinsDescription(spreads) {
  const [first] = spreads;
  const [low, median, high] = [5, 50, 95].map((at) => formatJoules(first.quantiles_j[at]));
  const largest = `${first.path.join(" ")}: median ${median}, P5 ${low}, P95 ${high}`;
  return `Energy of ${spreads.length} layers per step. Largest: ${largest}.`;
}
