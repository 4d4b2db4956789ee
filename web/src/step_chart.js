// SPDX-License-Identifier: Apache-2.0
//
// Bars of all steps on a canvas. The selected step has another colour; a mark below
// a bar shows that the page contains the layers of the step.
import { readCssProperty, h } from "./dom.js";
import { formatTickLabels, formatWithUnit } from "./format.js";
import { addThemeListener } from "./theme.js";
import { LABEL_WIDTH } from "./time_charts.js";

const CHART_HEIGHT = 120;
const DETAIL_MARK_HEIGHT = 8; // height of the marks below the bars
const RIGHT_MARGIN = 8;

// value(step): height of a bar in `unit`; null if unknown. hasDetail(index): whether the bar has a mark. select(index)
// is called for a click. Returns the element, paint(selected) and start().
export function makeStepChart(steps, { value, unit, hasDetail, select }) {
  const values = steps.map(value);
  const known = values.filter((one) => one !== null).sort((a, b) => a - b);
  const most = chartTopValue(known);
  const range = `${formatWithUnit(known[0], unit)} to ${formatWithUnit(known[known.length - 1], unit)}`;
  const label = `Bars of ${steps.length} steps: ${range}`;
  const canvas = h("canvas", { class: "step-chart", role: "img", "aria-label": label });
  const element = h("div", { class: "step-box" }, canvas);
  const width = () => Math.max(element.clientWidth - LABEL_WIDTH - RIGHT_MARGIN, 1);

  const paint = (selected) => {
    const ratio = devicePixelRatio || 1;
    canvas.width = element.clientWidth * ratio;
    canvas.height = (CHART_HEIGHT + DETAIL_MARK_HEIGHT + 2) * ratio;
    canvas.style.height = `${CHART_HEIGHT + DETAIL_MARK_HEIGHT + 2}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    paintAxis(context, most, unit);
    const bar = width() / steps.length;
    const gap = bar > 3 ? 1 : 0;
    const [usual, chosen, mark] = ["--lane-b", "--accent", "--quiet"].map(readCssProperty);
    const rectangle = (index, colour, least) => {
      const height = Math.min((values[index] ?? 0) / most, 1) * (CHART_HEIGHT - 8);
      context.fillStyle = colour;
      context.fillRect(LABEL_WIDTH + index * bar, CHART_HEIGHT - height, Math.max(bar - gap, least), height);
      // A bar that exceeds the chart is drawn with a gap near its top.
      if (values[index] > most) context.clearRect(LABEL_WIDTH + index * bar - 1, 16, Math.max(bar, least) + 2, 3);
    };
    steps.forEach((_, index) => {
      if (index !== selected) rectangle(index, usual, 0.5);
      if (!hasDetail(index)) return;
      context.fillStyle = mark;
      context.fillRect(LABEL_WIDTH + index * bar, CHART_HEIGHT + 4, Math.max(bar - gap, 1), 3);
    });
    if (selected >= 0) rectangle(selected, chosen, 2);
    if (selected >= 0)
      context.fillRect(LABEL_WIDTH + selected * bar, CHART_HEIGHT + 2, Math.max(bar - gap, 2), DETAIL_MARK_HEIGHT - 2);
  };
  canvas.addEventListener("click", (event) => {
    const at = event.clientX - canvas.getBoundingClientRect().left - LABEL_WIDTH;
    if (at >= 0) select(Math.min(Math.floor((at / width()) * steps.length), steps.length - 1));
  });
  // Call it once, when the element is in the page, to repaint on resize. selected(): index of the selected step.
  const start = (selected) => {
    addThemeListener(() => paint(selected()));
    new ResizeObserver(() => paint(selected())).observe(element);
  };
  return { element, paint, start };
}

// Value at the top of the chart: the largest one, or less if a few outliers would flatten all other bars.
function chartTopValue(sortedValues) {
  const largest = sortedValues[sortedValues.length - 1] || 1;
  const usual = sortedValues[Math.floor(0.95 * (sortedValues.length - 1))] || largest;
  return largest > 2.5 * usual ? 1.3 * usual : largest;
}

function paintAxis(context, most, unit) {
  context.font = `12px ${readCssProperty("--font")}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = readCssProperty("--quiet");
  const [zero, half, whole] = formatTickLabels(
    [0, most / 2, most].map((one) => Number(one.toPrecision(2))),
    unit,
  );
  context.fillText(whole, LABEL_WIDTH - 8, 8);
  context.fillText(half, LABEL_WIDTH - 8, 8 + (CHART_HEIGHT - 8) / 2);
  context.fillText(zero, LABEL_WIDTH - 8, CHART_HEIGHT - 4);
}
