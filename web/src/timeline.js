// SPDX-License-Identifier: Apache-2.0
// Power over time of every domain, with what ran beneath it and the gauges as tracks; all of them zoom together.
import uPlot from "uplot";
import { asTable, cssColour, h, section } from "./dom.js";
import { joules, secondsText, tick, watts, withUnit } from "./format.js";
import { lanes } from "./lanes.js";
import { ledgerLine } from "./ledger.js";
import { onTheme } from "./theme.js";

const GUTTER = 64; // for labels, left of all charts, so that they align
const POWER_HEIGHT = 260;
const TRACK_HEIGHT = 76;
const LEAST_SLICES = 4; // shown at least, however far one zooms in
const TRACKS = { "%": "Utilisation", degC: "Temperature", MHz: "Clocks", B: "Memory", W: "Power limit" };
const UNITS = { degC: "°C", MHz: "Hz", "%": "%", B: "B", W: "W" };
const SCALES = { MHz: 1e6 };

export function timeline(data) {
  if (!data.power.domains.length) return null;
  const state = { from: 0, to: data.run.elapsed_s, charts: [], painters: [] };
  const reading = h("p", { class: "reading", "aria-live": "polite" });
  const power = h("div", { class: "chart", tabindex: "0", role: "img", "aria-label": describe(data), "aria-describedby": "timeline-keys" });
  const strip = lanes(data, GUTTER);
  const tracks = h("div", { class: "tracks" });

  const setRange = (from, to) => {
    const least = LEAST_SLICES * data.power.slice_s;
    const width = Math.min(Math.max(to - from, least), data.run.elapsed_s);
    state.from = Math.min(Math.max(from, 0), data.run.elapsed_s - width);
    state.to = state.from + width;
    for (const chart of state.charts) chart.setScale("x", { min: state.from, max: state.to });
    strip.paint(state.from, state.to);
    tellRange(data, state, reading);
  };
  const zoom = (factor) => {
    const middle = (state.from + state.to) / 2;
    const half = ((state.to - state.from) / 2) * factor;
    setRange(middle - half, middle + half);
  };
  const pan = (share) => setRange(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));
  const reset = () => setRange(0, data.run.elapsed_s);
  const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: reset, Home: reset, ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25) };
  power.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const button = (label, text, act) => h("button", { type: "button", "aria-label": label, onclick: act }, text);
  const buttons = h("div", { class: "buttons" }, button("Zoom in", "+", () => zoom(0.5)), button("Zoom out", "−", () => zoom(2)), button("Earlier", "←", () => pan(-0.25)), button("Later", "→", () => pan(0.25)), button("Show all", "All", reset));

  const shown = section(
    "timeline",
    "Power over time",
    `Means over ${secondsText(data.power.slice_s)} each.`,
    h("div", { class: "toolbar" }, legend(data, state), buttons),
    h("p", { id: "timeline-keys", class: "hidden" }, "Keys: plus and minus zoom, arrows move, 0 shows all. Drag to zoom with a mouse."),
    reading,
    power,
    strip.element,
    tracks,
    asTable("Mean power by time", ["Time", ...data.power.domains.map((one) => one.name)], coarse(data)),
    ledgerLine(data, data.level("phase") ?? data.levels[0]),
  );
  shown.addEventListener("shown", () => {
    const draw = () => {
      for (const chart of state.charts) chart.destroy();
      state.charts = [powerChart(data, power, setRange, state), ...trackCharts(data, tracks, setRange)];
      setRange(state.from, state.to);
    };
    draw();
    onTheme(draw);
    new ResizeObserver(() => {
      for (const chart of state.charts) chart.setSize({ width: power.clientWidth, height: chart.height });
      strip.paint(state.from, state.to);
    }).observe(power);
  });
  return shown;
}

function describe(data) {
  const parts = data.power.domains.map((one) => {
    const known = one.values.filter((value) => value !== null);
    return known.length ? `${one.name} ${watts(Math.min(...known))} to ${watts(Math.max(...known))}` : `${one.name} not known`;
  });
  return `Power over ${secondsText(data.run.elapsed_s)}: ${parts.join("; ")}`;
}

// Energy between two moments, from the means of slices.
function energyBetween(values, slice_s, from, to) {
  let sum_j = 0;
  for (let i = Math.floor(from / slice_s); i < values.length && i * slice_s < to; ++i) {
    const time_s = Math.min(to, (i + 1) * slice_s) - Math.max(from, i * slice_s);
    sum_j += (values[i] ?? 0) * Math.max(time_s, 0);
  }
  return sum_j;
}

function tellRange(data, state, reading) {
  const parts = data.power.domains
    .filter((one) => data.domains.some((domain) => domain.name === one.name && domain.counted))
    .map((one) => [one.name, energyBetween(one.values, data.power.slice_s, state.from, state.to)])
    .map(([name, energy_j]) => [h("span", { class: "reading-name" }, name), h("b", {}, joules(energy_j)), h("span", { class: "unit" }, ` ${watts(energy_j / (state.to - state.from))}`)]);
  reading.replaceChildren(
    h("span", {}, h("b", {}, `${secondsText(state.from)} – ${secondsText(state.to)}`)),
    ...parts.map((part) => h("span", {}, part)),
  );
}

const colourOf = (index) => cssColour(`--line-${(index % 6) + 1}`);

function legend(data, state) {
  return h(
    "ul",
    { class: "legend toggles" },
    data.power.domains.map((one, index) => {
      const domain = data.domains.find((row) => row.name === one.name);
      const mark = domain?.provenance === "estimated" ? " estimated" : domain?.part_of ? ` in ${domain.part_of}` : "";
      const box = h("input", { type: "checkbox", checked: true, onchange: (event) => state.charts[0]?.setSeries(index + 1, { show: event.target.checked }) });
      return h("li", {}, h("label", {}, box, h("span", { class: "swatch line", style: { background: `var(--line-${(index % 6) + 1})` } }), h("span", {}, one.name), h("span", { class: "unit" }, mark)));
    }),
  );
}

// The end of the last slice closes its step; what a gauge showed last holds until it shows something else.
const stepped = (values) => [...values, values.reduce((last, value) => value ?? last, null)];
const times = (data) => Array.from({ length: (data.power.domains[0] ?? data.power.tracks[0]).values.length + 1 }, (_, i) => i * data.power.slice_s);

function options(width, height, setRange, unit, series) {
  const axis = { stroke: cssColour("--quiet"), grid: { stroke: cssColour("--line"), width: 1 }, ticks: { show: false }, font: `12px ${cssColour("--font")}` };
  return {
    width,
    height,
    padding: [8, 8, height > 100 ? 0 : 8, 0],
    cursor: { sync: { key: "joulemap" }, drag: { setScale: false, x: true, y: false }, points: { size: 6 } },
    legend: { show: false },
    scales: { x: { time: false }, y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max ?? 1) * 1.05 || 1] } },
    axes: [
      { ...axis, size: height > 100 ? 28 : 0, show: height > 100, values: (_, ticks) => ticks.map((at) => tick(at, "s")) },
      { ...axis, size: GUTTER, gap: 8, space: height > 100 ? 40 : 26, values: (_, ticks) => ticks.map((at) => tick(at, unit)) },
    ],
    series: [{}, ...series],
    hooks: {
      setSelect: [
        (chart) => {
          if (chart.select.width < 4) return;
          setRange(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
          chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
      ready: [(chart) => chart.over.addEventListener("dblclick", () => setRange(0, Infinity))],
    },
  };
}

function line(index, label, unit) {
  return { label, stroke: colourOf(index), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }), value: (_, value) => withUnit(value, unit) };
}

function powerChart(data, target, setRange, state) {
  const series = data.power.domains.map((one, index) => ({
    ...line(index, one.name, "W"),
    fill: index === 0 ? `${colourOf(0)}22` : undefined,
    dash: data.domains.find((row) => row.name === one.name)?.provenance === "estimated" ? [4, 3] : undefined,
    show: state.charts[0]?.series[index + 1]?.show ?? true,
  }));
  const chart = new uPlot(options(target.clientWidth, POWER_HEIGHT, setRange, "W", series), [times(data), ...data.power.domains.map((one) => stepped(one.values))], target);
  tooltip(chart, data);
  return chart;
}

function tooltip(chart, data) {
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  chart.over.append(tip);
  chart.over.addEventListener("mouseleave", () => (tip.hidden = true));
  chart.over.addEventListener("mousemove", () => {
    const { idx, left } = chart.cursor;
    if (idx === null || idx === undefined) return;
    tip.hidden = false;
    tip.replaceChildren(
      h("b", {}, secondsText(idx * data.power.slice_s, 4)),
      ...data.power.domains.map((one, index) => (chart.series[index + 1].show ? h("span", {}, h("i", { style: { background: colourOf(index) } }), one.name, h("b", {}, watts(one.values[Math.min(idx, one.values.length - 1)]))) : null)).filter(Boolean),
    );
    const flip = left > chart.over.clientWidth - 190;
    tip.style.left = `${left + (flip ? -12 : 12)}px`;
    tip.style.transform = flip ? "translateX(-100%)" : "";
  });
}

// One small chart for each unit; the limit of power is part of the clocks' neighbour, not of the power itself.
function trackCharts(data, target, setRange) {
  target.replaceChildren();
  const groups = new Map();
  for (const track of data.power.tracks) {
    if (!TRACKS[track.unit] || track.values.every((value) => value === null)) continue;
    const values = track.values.map((value) => (value === null ? null : value * (SCALES[track.unit] ?? 1)));
    groups.set(track.unit, [...(groups.get(track.unit) ?? []), { ...track, values }]);
  }
  return [...groups].map(([unit, tracks]) => {
    const known = tracks.flatMap((track) => track.values.filter((value) => value !== null));
    const label = `${TRACKS[unit]}: ${tracks.map((track) => track.name).join(", ")}; ${withUnit(Math.min(...known), UNITS[unit])} to ${withUnit(Math.max(...known), UNITS[unit])}`;
    const names = tracks.map((track, index) => h("span", {}, h("span", { class: "swatch line", style: { background: `var(--line-${(index % 6) + 1})` } }), track.name));
    const box = h("div", { class: "chart track", role: "img", "aria-label": label });
    target.append(h("div", { class: "track-head" }, h("b", {}, TRACKS[unit]), names), box);
    const series = tracks.map((track, index) => ({ ...line(index, track.name, UNITS[unit]), spanGaps: true }));
    return new uPlot(options(box.clientWidth, TRACK_HEIGHT, setRange, UNITS[unit], series), [times(data), ...tracks.map((track) => stepped(track.values))], box);
  });
}

// Two dozen rows say what the picture shows.
function coarse(data) {
  const rows = 24;
  const step_s = data.run.elapsed_s / rows;
  return Array.from({ length: rows }, (_, row) => [
    `${secondsText(row * step_s)} – ${secondsText((row + 1) * step_s)}`,
    ...data.power.domains.map((one) => watts(energyBetween(one.values, data.power.slice_s, row * step_s, (row + 1) * step_s) / step_s)),
  ]);
}
