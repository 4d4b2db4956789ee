// SPDX-License-Identifier: Apache-2.0
// Lanes below the power chart: epochs, steps, phases, regions, probing and pauses as bands over time, on a canvas. The
// timeline calls paint() when the reader zooms.
import { readCssProperty, h } from "./dom.js";
import { formatJoules, formatCount, formatSeconds } from "./format.js";
import { findPhase } from "./data.js";
import { colourProperty } from "./ledger.js";
import { addThemeListener } from "./theme.js";

const LANE_HEIGHT = 22;
const BAR_HEIGHT = 14;
const RIGHT_MARGIN = 8;

export function makeLanes(data, gutter) {
  const rows = makeLaneRows(data);
  const canvas = h("canvas", { class: "lanes", role: "img", "aria-label": lanesDescription(rows) });
  const tooltip = h("div", { class: "tip lane-tip", hidden: true, "aria-hidden": "true" });
  const element = h("div", { class: "lane-box", hidden: rows.length === 0 }, canvas, tooltip);
  let shown = [0, data.run.elapsed_s];

  const paint = (from, to) => {
    shown = [from, to];
    const width = element.clientWidth;
    const height = rows.length * LANE_HEIGHT + 4;
    const ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    rows.forEach((row, index) => paintRow(context, row, index * LANE_HEIGHT + 4, { from, to, gutter, width }));
  };
  const findBandAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top - 4) / LANE_HEIGHT)];
    const time_s =
      shown[0] + ((event.clientX - box.left - gutter) / (box.width - gutter - RIGHT_MARGIN)) * (shown[1] - shown[0]);
    return { box, row, band: row?.bands.find((one) => one.begin_s <= time_s && time_s < one.end_s) };
  };
  canvas.addEventListener("mouseleave", () => (tooltip.hidden = true));
  canvas.addEventListener("mousemove", (event) => {
    const { band, box } = findBandAt(event);
    tooltip.hidden = !band;
    if (!band) return;
    tooltip.textContent = band.text();
    tooltip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - 220)}px`;
    tooltip.style.top = `${event.clientY - box.top + 16}px`;
  });
  // A click on a step selects it in the section "Steps".
  canvas.addEventListener("click", (event) => {
    const { row, band } = findBandAt(event);
    const stepExplorer = document.getElementById("steps");
    if (!stepExplorer || row?.name !== "steps" || !band) return;
    stepExplorer.dispatchEvent(new CustomEvent("select-step", { detail: row.bands.indexOf(band) }));
    stepExplorer.scrollIntoView();
  });
  addThemeListener(() => paint(...shown));
  return { element, paint };
}

const moreStagesText = (stage) => (stage.count > 1 ? ` and ${stage.count - 1} more` : "");
const bandTimesText = (band) => `${formatSeconds(band.begin_s, 4)} – ${formatSeconds(band.end_s, 4)}`;

function makeStepOrEpochRow(name, stages) {
  const bands = stages.map((stage, index) => ({
    begin_s: stage.begin_s,
    end_s: stage.end_s,
    label: String(stage.number),
    colour: index % 2 ? "--lane-b" : "--lane-a",
    text: () => `${name} ${stage.number}${moreStagesText(stage)}: ${formatJoules(stage.energy_j)}, ${bandTimesText(stage)}`,
  }));
  return { name: `${name}s`, bands };
}

function makeBandRow(name, bands, colour) {
  return {
    name,
    bands: bands.map((band) => ({
      ...band,
      label: band.name,
      colour: colour(band),
      text: () => `${band.name}${band.count > 1 ? ` (${formatCount(band.count, "time")})` : ""}: ${bandTimesText(band)}`,
    })),
  };
}

// Begin of probing within a step or epoch, if any. The last step extends to the end of the command, which includes
// probing: its band ends where probing begins.
const findProbingBegin = (stage, probing) =>
  probing.find((band) => band.begin_s > stage.begin_s && band.begin_s < stage.end_s)?.begin_s;

function makeLaneRows(data) {
  const rows = [];
  const stages = (list) => list.map((stage) => ({ ...stage, end_s: findProbingBegin(stage, data.probing) ?? stage.end_s }));
  if (data.epochs.length) rows.push(makeStepOrEpochRow("epoch", stages(data.epochs)));
  if (data.steps.length) rows.push(makeStepOrEpochRow("step", stages(data.steps)));
  const names = [...new Set(data.phases.map((band) => band.name))];
  const slot = (band) => colourProperty(findPhase(band.name.split(" ")), names.indexOf(band.name));
  if (data.phases.length) rows.push(makeBandRow("phases", data.phases, slot));
  const regions = [...new Set(data.regions.map((band) => band.name))];
  if (data.regions.length)
    rows.push(makeBandRow("regions", data.regions, (band) => colourProperty("", regions.indexOf(band.name))));
  if (data.probing.length) rows.push(makeBandRow("probing", data.probing, () => "--part-5"));
  if (data.dithering.length) rows.push(makeBandRow("pauses", data.dithering, () => "--part-6"));
  return rows;
}

function paintRow(context, row, top, { from, to, gutter, width }) {
  const scale = (width - gutter - RIGHT_MARGIN) / (to - from);
  context.font = `12px ${readCssProperty("--font")}`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = readCssProperty("--quiet");
  context.fillText(row.name, gutter - 10, top + BAR_HEIGHT / 2);
  context.textAlign = "left";
  const colours = new Map();
  for (const band of row.bands) {
    if (band.end_s <= from || band.begin_s >= to) continue;
    const left = gutter + (Math.max(band.begin_s, from) - from) * scale;
    const right = gutter + (Math.min(band.end_s, to) - from) * scale;
    if (!colours.has(band.colour)) colours.set(band.colour, readCssProperty(band.colour));
    context.fillStyle = colours.get(band.colour);
    const gap = right - left > 4 ? 1 : 0;
    context.fillRect(left, top, Math.max(right - left - gap, 0.5), BAR_HEIGHT);
    if (right - left < 8 * band.label.length + 8) continue;
    context.fillStyle = readCssProperty(band.colour.startsWith("--lane") ? "--text" : "--on-part");
    context.fillText(band.label, left + 4, top + BAR_HEIGHT / 2 + 0.5);
  }
}

function lanesDescription(rows) {
  return `Spans below the power chart: ${rows.map((row) => `${row.bands.length} ${row.name}`).join(", ")}`;
}
