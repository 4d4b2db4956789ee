// SPDX-License-Identifier: Apache-2.0
//
// The section "Power over time": a chart of power by domain, lanes of steps and
// phases, and charts of other gauges. They zoom together.
import { collapsibleTable, h, pageSection } from "./dom.js";
import { formatJoules, formatSeconds, formatWatts } from "./format.js";
import { makeLanes } from "./lanes.js";
import { ledgerSummaryList } from "./ledger.js";
import { addThemeListener } from "./theme.js";
import { LABEL_WIDTH, makePowerChart, makeTrackCharts } from "./time_charts.js";

const MIN_VISIBLE_SLICES = 4; // minimum number of visible slices at any zoom

export function timelineSection(data) {
  if (!data.power.domains.length) return null;
  const state = { from: 0, to: data.run.elapsed_s, charts: [] };
  const reading = h("p", { class: "reading", "aria-live": "polite" });
  const power = h("div", {
    class: "chart",
    tabindex: "0",
    role: "img",
    "aria-label": timelineDescription(data),
    "aria-describedby": "timeline-keys",
  });
  const strip = makeLanes(data, LABEL_WIDTH);
  const tracks = h("div", { class: "tracks" });

  const setRange = (from, to) => {
    const least = MIN_VISIBLE_SLICES * data.power.slice_s;
    const width = Math.min(Math.max(to - from, least), data.run.elapsed_s);
    state.from = Math.min(Math.max(from, 0), data.run.elapsed_s - width);
    state.to = state.from + width;
    for (const chart of state.charts) chart.setScale("x", { min: state.from, max: state.to });
    strip.paint(state.from, state.to);
    showRangeEnergy(data, state, reading);
  };
  const zoom = (factor) => {
    const centre = (state.from + state.to) / 2;
    const half = ((state.to - state.from) / 2) * factor;
    setRange(centre - half, centre + half);
  };
  const pan = (share) =>
    setRange(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));
  const reset = () => setRange(0, data.run.elapsed_s);
  const keys = {
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: reset,
    Home: reset,
    ArrowLeft: () => pan(-0.25),
    ArrowRight: () => pan(0.25),
  };
  power.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const button = (label, text, act) => h("button", { type: "button", "aria-label": label, onclick: act }, text);
  const buttons = h(
    "div",
    { class: "buttons" },
    button("Zoom in", "+", () => zoom(0.5)),
    button("Zoom out", "−", () => zoom(2)),
    button("Earlier", "←", () => pan(-0.25)),
    button("Later", "→", () => pan(0.25)),
    button("Show all", "All", reset),
  );

  const shown = pageSection(
    "timeline",
    "Power over time",
    `Mean power in slices of ${formatSeconds(data.power.slice_s)}.`,
    h("div", { class: "toolbar" }, timelineLegend(data, state), buttons),
    h(
      "p",
      { id: "timeline-keys", class: "hidden" },
      "Keys: plus and minus zoom, arrows pan, 0 shows all. Drag with the mouse to zoom.",
    ),
    reading,
    power,
    strip.element,
    tracks,
    collapsibleTable(
      "Mean power by time",
      ["Time", ...data.power.domains.map((domain) => domain.name)],
      meanPowerRows(data),
    ),
    ledgerSummaryList(data, data.level("phase") ?? data.levels[0]),
  );
  shown.addEventListener("shown", () => {
    const draw = () => {
      for (const chart of state.charts) chart.destroy();
      state.charts = [makePowerChart(data, power, setRange, state), ...makeTrackCharts(data, tracks, setRange)];
      setRange(state.from, state.to);
    };
    draw();
    addThemeListener(draw);
    new ResizeObserver(() => {
      for (const chart of state.charts) chart.setSize({ width: power.clientWidth, height: chart.height });
      strip.paint(state.from, state.to);
    }).observe(power);
  });
  return shown;
}

function timelineDescription(data) {
  const parts = data.power.domains.map((one) => {
    const known = one.values.filter((value) => value !== null);
    return known.length
      ? `${one.name} ${formatWatts(Math.min(...known))} to ${formatWatts(Math.max(...known))}`
      : `${one.name} unknown`;
  });
  return `Power over ${formatSeconds(data.run.elapsed_s)}: ${parts.join("; ")}`;
}

// Energy between two times from the mean powers of slices, and the mean power over the known slices. Both are null if
// no slice is known.
function energyBetween(values, slice_s, from, to) {
  let energy_j = 0;
  let known_s = 0;
  for (let i = Math.floor(from / slice_s); i < values.length && i * slice_s < to; ++i) {
    const time_s = Math.max(Math.min(to, (i + 1) * slice_s) - Math.max(from, i * slice_s), 0);
    if (values[i] === null) continue;
    energy_j += values[i] * time_s;
    known_s += time_s;
  }
  return known_s > 0 ? { energy_j, power_w: energy_j / known_s } : { energy_j: null, power_w: null };
}

function showRangeEnergy(data, state, reading) {
  const parts = data.power.domains
    .filter((one) => data.domains.some((domain) => domain.name === one.name && domain.counted))
    .map((one) => [one.name, energyBetween(one.values, data.power.slice_s, state.from, state.to)])
    .map(([name, used]) => [
      h("span", { class: "reading-name" }, name),
      h("b", {}, formatJoules(used.energy_j)),
      h("span", { class: "unit" }, ` ${formatWatts(used.power_w)}`),
    ]);
  reading.replaceChildren(
    h("span", {}, h("b", {}, `${formatSeconds(state.from)} – ${formatSeconds(state.to)}`)),
    ...parts.map((part) => h("span", {}, part)),
  );
}

function timelineLegend(data, state) {
  return h(
    "ul",
    { class: "legend toggles" },
    data.power.domains.map((one, index) => {
      const domain = data.domains.find((row) => row.name === one.name);
      const mark = domain?.provenance === "estimated" ? " estimated" : domain?.part_of ? ` in ${domain.part_of}` : "";
      const box = h("input", {
        type: "checkbox",
        checked: true,
        onchange: (event) => state.charts[0]?.setSeries(index + 1, { show: event.target.checked }),
      });
      return h(
        "li",
        {},
        h(
          "label",
          {},
          box,
          h("span", { class: "swatch line", style: { background: `var(--line-${(index % 6) + 1})` } }),
          h("span", {}, one.name),
          h("span", { class: "unit" }, mark),
        ),
      );
    }),
  );
}

// Rows of the table that summarizes the chart: mean power in 24 equal parts of the run.
function meanPowerRows(data) {
  const rows = 24;
  const step_s = data.run.elapsed_s / rows;
  return Array.from({ length: rows }, (_, row) => [
    `${formatSeconds(row * step_s)} – ${formatSeconds((row + 1) * step_s)}`,
    ...data.power.domains.map((one) =>
      formatWatts(energyBetween(one.values, data.power.slice_s, row * step_s, (row + 1) * step_s).power_w),
    ),
  ]);
}
