// SPDX-License-Identifier: Apache-2.0
// The section with the tables of all levels: sortable by column, filterable by text, with bars and intervals of energy.
import { isBackgroundRow, isProbeRow, totalEnergyOfLevel } from "./data.js";
import { choiceButtons, h, pageSection } from "./dom.js";
import {
  formatInterval,
  formatJoules,
  formatPercent,
  relativeHalfWidth,
  formatHalfWidth,
  formatSeconds,
  formatWatts,
  formatInteger,
} from "./format.js";
import { ledgerSummaryList, sumEnergies, zeroIfRoundingError } from "./ledger.js";
import { shortNameElement, shortNamesOfRows } from "./names.js";

const ROWS_PER_PAGE = 40;
const LEVEL_TITLES = {
  phase: "Phases",
  layer: "Layers",
  module: "Modules",
  op: "Operations",
  tensor: "Tensors",
  kernel: "Kernels",
  function: "Functions",
  region: "Regions",
};
const LEVEL_ORDER = ["layer", "module", "op", "kernel", "function", "tensor", "region", "phase"];

const BASIS_TEXTS = {
  regressed: "power of the kernel class or layer, from a regression over the run",
  probed: "power of the kernel class, measured while modules were replayed",
  library: "power of the kernel class, from the kernel library",
  "time-share": "split by time: the data cannot separate the powers",
  "cpu-time": "split by CPU time: the data cannot separate the powers",
  estimated: "estimated energy, split by CPU time",
  measured: "measured as a whole",
};

const CAUSE_BASIS_TEXTS = {
  ledger: "from the recorded kernels and calls",
  name: "from the name only",
};

function tableColumns(data) {
  const steps = data.steps.reduce((sum, step) => sum + step.count, 0);
  const list = [
    { key: "name", text: "Name", value: (row) => rowPathText(row).toLowerCase(), first: 1 },
    { key: "device", text: "Device", value: (row) => row.device, first: 1 },
    { key: "energy_j", text: "Energy", value: (row) => row.energy_j, number: true },
    {
      key: "interval",
      text: "±",
      value: relativeHalfWidth,
      number: true,
      title: `${formatInteger(100 * data.run.interval)} % interval`,
    },
    { key: "share", text: "Share", value: (row) => row.share, number: true },
    { key: "power_w", text: "Power", value: (row) => row.power_w, number: true },
    { key: "time_s", text: "Time", value: (row) => row.time_s, number: true },
    { key: "count", text: "Calls", value: (row) => row.count, number: true },
    { key: "cause", text: "Cause", value: (row) => row.cause, first: 1, title: "cause of most of the time" },
    { key: "basis", text: "Basis", value: (row) => row.basis, first: 1 },
  ];
  if (data.levels.some((level) => level.rows.some((row) => row.waiting_j > 0)))
    list.splice(list.length - 2, 0, {
      key: "waiting_j",
      text: "Waiting",
      value: (row) => row.waiting_j,
      number: true,
      title: "energy of the idle GPU while it waited for this row; not part of Energy",
    });
  if (steps > 1)
    list.splice(4, 0, {
      key: "per_step",
      text: "Per step",
      value: (row) => (row.energy_j === null || isProbeRow(row) ? null : row.energy_j / steps),
      number: true,
    });
  return list;
}

const rowPathText = (row) => (row.path.length > 1 ? row.path.join(" ") : row.name);

export function tablesSection(data) {
  const hasRowsOfMeasuredProgram = (level) => level?.rows.some((row) => !isProbeRow(row) && !isBackgroundRow(row));
  const levels = LEVEL_ORDER.map((by) => data.level(by)).filter(hasRowsOfMeasuredProgram);
  if (!levels.length) return null;
  const state = { level: levels[0], sort: "energy_j", isDescending: true, filter: "", shownRowCount: ROWS_PER_PAGE };
  const view = h("div", {});
  const status = h("output", { class: "found", for: "table-filter" });
  const draw = () => view.replaceChildren(...drawTable(data, state, status, draw));
  const filter = h("input", {
    id: "table-filter",
    type: "search",
    placeholder: "Filter: conv backward",
    "aria-label": "Filter rows",
    oninput: (event) => {
      state.filter = event.target.value;
      state.shownRowCount = ROWS_PER_PAGE;
      draw();
    },
  });
  const levelButtons = choiceButtons(
    "Level",
    levels.map((level) => [level.by, LEVEL_TITLES[level.by]]),
    (by) => {
      state.level = data.level(by);
      state.shownRowCount = ROWS_PER_PAGE;
      draw();
    },
  );
  draw();
  return pageSection(
    "tables",
    "Layers, operations, kernels",
    null,
    h("div", { class: "toolbar" }, levelButtons, h("div", { class: "search" }, filter, status)),
    view,
  );
}

// Rows that contain every word of `text` in path, name, device, cause or basis, ignoring case.
export function filterRows(rows, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter((row) => {
    const all = `${row.path.join(" ")} ${row.name} ${row.device} ${row.cause ?? ""} ${row.basis}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

// Header cell of the column `one`: a click sorts by it, or reverses the order. `column`: the column by which the table
// is sorted. draw() redraws the table; the header keeps the focus.
export function sortableHeaderCell(one, column, state, draw) {
  const isSorted = one === column;
  const sortBy = () => {
    state.isDescending = state.sort === one.key ? !state.isDescending : one.first !== 1;
    state.sort = one.key;
    draw();
    document.querySelector(`#tables th[data-key="${one.key}"] button`)?.focus();
  };
  return h(
    "th",
    {
      scope: "col",
      "data-key": one.key,
      class: one.number ? "number" : null,
      "aria-sort": isSorted ? (state.isDescending ? "descending" : "ascending") : "none",
    },
    h(
      "button",
      { type: "button", title: one.title, onclick: sortBy },
      one.text,
      h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (state.isDescending ? "↓" : "↑") : ""),
    ),
  );
}

// Rows sorted by a column. Unknown values come last in both directions.
export function sortRows(rows, column, isDescending) {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = column.value(a);
    const right = column.value(b);
    if (left === right) return 0;
    if (left === null || left === undefined) return 1;
    if (right === null || right === undefined) return -1;
    return left < right ? -sign : sign;
  });
}

function drawTable(data, state, status, draw) {
  const list = tableColumns(data);
  const column = list.find((one) => one.key === state.sort) ?? list[2];
  const rows = filterRows(state.level.rows, state.filter);
  const ordered = sortRows(rows, column, state.isDescending);
  const visible = ordered.slice(0, state.shownRowCount);
  const shorter = (state.level.shorter ??= shortNamesOfRows(state.level.rows));
  const most = Math.max(...rows.filter((row) => !isProbeRow(row)).map((row) => row.energy_j ?? 0), 0);
  status.textContent = state.filter
    ? `${formatInteger(rows.length)} of ${formatInteger(state.level.rows.length)} rows, ${formatJoules(sumEnergies(rows))}`
    : `${formatInteger(state.level.rows.length)} rows`;
  const head = (one) => sortableHeaderCell(one, column, state, draw);
  const table = h(
    "table",
    { class: "rows" },
    h("caption", { class: "hidden" }, `${LEVEL_TITLES[state.level.by]}, sorted by ${column.text}`),
    h("thead", {}, h("tr", {}, list.map(head))),
    h(
      "tbody",
      {},
      visible.map((row) =>
        h(
          "tr",
          {},
          list.map((one) => tableCell(row, one, most, shorter)),
        ),
      ),
    ),
    h("tfoot", {}, footerRows(state, ordered, visible, list.length)),
  );
  const parts = [
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": LEVEL_TITLES[state.level.by] }, table),
  ];
  if (visible.length < ordered.length) {
    parts.push(
      h(
        "button",
        {
          type: "button",
          class: "more",
          onclick: () => {
            state.shownRowCount += 5 * ROWS_PER_PAGE;
            draw();
          },
        },
        `Show ${formatInteger(Math.min(5 * ROWS_PER_PAGE, ordered.length - visible.length))} more`,
      ),
    );
  }
  parts.push(ledgerSummaryList(data, state.level));
  return parts;
}

// The path of a row with short module names; the full path as a tooltip.
export function nameCell(row, name, shorter) {
  return h(
    "th",
    { scope: "row", class: "name", title: row.path.join(" › ") },
    h(
      "span",
      { class: "path" },
      row.path.slice(0, -1).map((part) => [shortNameElement(part, shorter), " "]),
      h("span", { class: "on-phone" }, row.device),
    ),
    h("span", {}, row.path.length > 1 ? shortNameElement(row.path[row.path.length - 1], shorter) : name),
  );
}

function tableCell(row, column, most, shorter) {
  const value = column.value(row);
  switch (column.key) {
    case "name":
      return nameCell(row, row.name, shorter);
    case "energy_j":
      return h(
        "td",
        { class: "number energy", title: formatInterval(row), "data-value": value },
        whiskerBar(row, most),
        h("span", {}, formatJoules(value, 4)),
      );
    case "interval":
      return h("td", { class: "number unit" }, formatHalfWidth(row));
    case "waiting_j":
      return h("td", { class: "number", title: waitingIntervalText(row) }, formatJoules(value));
    case "per_step":
      return h("td", { class: "number" }, formatJoules(value));
    case "share":
      return h("td", { class: "number" }, formatPercent(value));
    case "power_w":
      return h("td", { class: "number" }, formatWatts(value));
    case "time_s":
      return h("td", { class: "number" }, formatSeconds(value));
    case "count":
      return h("td", { class: "number" }, formatInteger(value));
    case "cause":
      return h("td", {}, value && h("span", { class: "basis", title: CAUSE_BASIS_TEXTS[row.cause_basis] }, value));
    case "basis":
      return h("td", {}, h("span", { class: "basis", title: BASIS_TEXTS[value] ?? value }, value));
    default:
      return h("td", {}, value);
  }
}

const waitingIntervalText = (row) =>
  row.waiting_low_j === null ? null : `${formatJoules(row.waiting_low_j)} to ${formatJoules(row.waiting_high_j)}`;

// Bar of the energy of a row, with its interval as a whisker. `most`: energy at the full length, in J.
function whiskerBar(row, most) {
  if (row.energy_j === null || !(most > 0)) return null;
  const at = (value) => `${Math.max(0, Math.min(100, (100 * value) / most))}%`;
  return h(
    "span",
    { class: "whisker", "aria-hidden": "true" },
    h("i", { class: row.energy_j > most ? "beyond" : null, style: { width: at(row.energy_j) } }),
    row.low_j !== null && row.energy_j <= most
      ? h("em", { style: { left: at(row.low_j), right: `calc(100% - ${at(row.high_j)})` } })
      : null,
  );
}

function footerRows(state, ordered, visible, width) {
  const line = (name, energy_j) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}),
      h("td", { class: "number" }, formatJoules(energy_j, 4)),
      h("td", { colspan: String(width - 3) }),
    );
  const lines = [];
  const hidden = ordered.slice(visible.length);
  if (hidden.length) lines.push(line(`and ${formatInteger(hidden.length)} more`, sumEnergies(hidden)));
  const { rest } = state.level;
  if (rest && !state.filter) lines.push(line(`and ${formatInteger(rest.rows)} more, not in this file`, rest.energy_j));
  if (state.filter || state.level.attributed_j === null) return lines;
  lines.push(
    line("idle", state.level.idle_j),
    line("not attributed", zeroIfRoundingError(state.level.unattributed_j, totalEnergyOfLevel(state.level))),
  );
  return lines;
}
