// SPDX-License-Identifier: Apache-2.0
//
// Charts over the time of the run, drawn by uPlot: power, and a small chart for
// each unit of other gauges. Dragging in one zooms all of them.
import uPlot from "uplot";
import { readCssProperty, h } from "./dom.js";
import { formatSeconds, formatTickLabels, formatWatts, formatWithUnit } from "./format.js";

export const LABEL_WIDTH = 64; // width of the labels to the left, in px; equal for all charts, so that they align
const POWER_CHART_HEIGHT = 260;
const TRACK_HEIGHT = 76;
const TRACK_TITLES = { "%": "Utilisation", degC: "Temperature", MHz: "Clocks", B: "Memory", W: "Power limit" };
const TRACK_UNITS = { degC: "°C", MHz: "Hz", "%": "%", B: "B", W: "W" };
const UNIT_SCALES = { MHz: 1e6 };

const lineColour = (index) => readCssProperty(`--line-${(index % 6) + 1}`);

// Appends the last known value at the end of the last slice, because a stepped line ends at its last point.
const appendLastValue = (values) => [...values, values.reduce((last, value) => value ?? last, null)];
const sliceTimes = (data) =>
  Array.from(
    { length: (data.power.domains[0] ?? data.power.tracks[0]).values.length + 1 },
    (_, i) => i * data.power.slice_s,
  );

function chartOptions(width, height, setRange, unit, series) {
  const axis = {
    stroke: readCssProperty("--quiet"),
    grid: { stroke: readCssProperty("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${readCssProperty("--font")}`,
  };
  return {
    width,
    height,
    padding: [8, 8, height > 100 ? 0 : 8, 0],
    cursor: { sync: { key: "joulemap" }, drag: { setScale: false, x: true, y: false }, points: { size: 6 } },
    legend: { show: false },
    scales: { x: { time: false }, y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max ?? 1) * 1.05 || 1] } },
    axes: [
      {
        ...axis,
        size: height > 100 ? 28 : 0,
        show: height > 100,
        values: (_, splits) => formatTickLabels(splits, "s"),
      },
      {
        ...axis,
        size: LABEL_WIDTH,
        gap: 8,
        space: height > 100 ? 40 : 26,
        values: (_, splits) => formatTickLabels(splits, unit),
      },
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

function makeLineSeries(index, label, unit) {
  return {
    label,
    stroke: lineColour(index),
    width: 1.5,
    points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }),
    value: (_, value) => formatWithUnit(value, unit),
  };
}

export function makePowerChart(data, target, setRange, state) {
  const series = data.power.domains.map((one, index) => ({
    ...makeLineSeries(index, one.name, "W"),
    fill: index === 0 ? `${lineColour(0)}22` : undefined,
    dash: data.domains.find((row) => row.name === one.name)?.provenance === "estimated" ? [4, 3] : undefined,
    show: state.charts[0]?.series[index + 1]?.show ?? true,
  }));
  const chart = new uPlot(
    chartOptions(target.clientWidth, POWER_CHART_HEIGHT, setRange, "W", series),
    [sliceTimes(data), ...data.power.domains.map((domain) => appendLastValue(domain.values))],
    target,
  );
  chartTooltip(chart, data);
  return chart;
}

function chartTooltip(chart, data) {
  const tooltip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  chart.over.append(tooltip);
  chart.over.addEventListener("mouseleave", () => (tooltip.hidden = true));
  chart.over.addEventListener("mousemove", () => {
    const { idx, left } = chart.cursor;
    if (idx === null || idx === undefined) return;
    tooltip.hidden = false;
    tooltip.replaceChildren(
      h("b", {}, formatSeconds(idx * data.power.slice_s, 4)),
      ...data.power.domains
        .map((one, index) =>
          chart.series[index + 1].show
            ? h(
                "span",
                {},
                h("i", { style: { background: lineColour(index) } }),
                one.name,
                h("b", {}, formatWatts(one.values[Math.min(idx, one.values.length - 1)])),
              )
            : null,
        )
        .filter(Boolean),
    );
    const flip = left > chart.over.clientWidth - 190;
    tooltip.style.left = `${left + (flip ? -12 : 12)}px`;
    tooltip.style.transform = flip ? "translateX(-100%)" : "";
  });
}

// One small chart for each unit. Gauges in W, such as the power limit, have a chart of their own, too.
export function makeTrackCharts(data, target, setRange) {
  target.replaceChildren();
  const groups = new Map();
  for (const track of data.power.tracks) {
    if (!TRACK_TITLES[track.unit] || track.values.every((value) => value === null)) continue;
    const values = track.values.map((value) => (value === null ? null : value * (UNIT_SCALES[track.unit] ?? 1)));
    groups.set(track.unit, [...(groups.get(track.unit) ?? []), { ...track, values }]);
  }
  return [...groups].map(([unit, tracks]) => {
    const known = tracks.flatMap((track) => track.values.filter((value) => value !== null));
    const [least, most] = [Math.min(...known), Math.max(...known)].map((value) => formatWithUnit(value, TRACK_UNITS[unit]));
    const label = `${TRACK_TITLES[unit]}: ${tracks.map((track) => track.name).join(", ")}; ${least} to ${most}`;
    const names = tracks.map((track, index) =>
      h(
        "span",
        {},
        h("span", { class: "swatch line", style: { background: `var(--line-${(index % 6) + 1})` } }),
        track.name,
      ),
    );
    const box = h("div", { class: "chart track", role: "img", "aria-label": label });
    target.append(h("div", { class: "track-head" }, h("b", {}, TRACK_TITLES[unit]), names), box);
    const series = tracks.map((track, index) => ({
      ...makeLineSeries(index, track.name, TRACK_UNITS[unit]),
      spanGaps: true,
    }));
    return new uPlot(
      chartOptions(box.clientWidth, TRACK_HEIGHT, setRange, TRACK_UNITS[unit], series),
      [sliceTimes(data), ...tracks.map((track) => appendLastValue(track.values))],
      box,
    );
  });
}
