// SPDX-License-Identifier: Apache-2.0
// The section with the tables of all levels: sortable by column, filterable by text, with bars and intervals of energy.
import { isBackground, isProbe, wholeOf } from "./data.js";
import { choice, h, section } from "./dom.js";
import { intervalText, joules, percent, plusMinus, plusMinusText, secondsText, watts, whole } from "./format.js";
import { ledgerLine, sumOf, unrounded } from "./ledger.js";
import { nameText, shortNamesOfRows } from "./names.js";

const PAGE = 40;
const TITLES = {
  phase: "Phases",
  layer: "Layers",
  op: "Operations",
  tensor: "Tensors",
  kernel: "Kernels",
  function: "Functions",
  region: "Regions",
};
const ORDER = ["layer", "op", "kernel", "function", "tensor", "region", "phase"];

const BASES = {
  regressed: "power of the kernel class or layer, from a regression over the run",
  probed: "power of the kernel class, measured while modules were replayed",
  library: "power of the kernel class, from the kernel library",
  "time-share": "split by time: the data cannot separate the powers",
  "cpu-time": "split by CPU time: the data cannot separate the powers",
  estimated: "estimated energy, split by CPU time",
  measured: "measured as a whole",
};

const CAUSES = {
  ledger: "from the recorded kernels and calls",
  name: "from the name only",
};

function columns(data) {
  const steps = data.steps.reduce((sum, step) => sum + step.count, 0);
  const list = [
    { key: "name", text: "Name", value: (row) => pathText(row).toLowerCase(), first: 1 },
    { key: "device", text: "Device", value: (row) => row.device, first: 1 },
    { key: "energy_j", text: "Energy", value: (row) => row.energy_j, number: true },
    {
      key: "interval",
      text: "±",
      value: plusMinus,
      number: true,
      title: `${whole(100 * data.run.interval)} % interval`,
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
      value: (row) => (row.energy_j === null || isProbe(row) ? null : row.energy_j / steps),
      number: true,
    });
  return list;
}

const pathText = (row) => (row.path.length > 1 ? row.path.join(" ") : row.name);

export function tables(data) {
  const hasProgramRows = (level) => level?.rows.some((row) => !isProbe(row) && !isBackground(row));
  const levels = ORDER.map((by) => data.level(by)).filter(hasProgramRows);
  if (!levels.length) return null;
  const state = { level: levels[0], sort: "energy_j", down: true, filter: "", shown: PAGE };
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
      state.shown = PAGE;
      draw();
    },
  });
  const pick = choice(
    "Level",
    levels.map((level) => [level.by, TITLES[level.by]]),
    (by) => {
      state.level = data.level(by);
      state.shown = PAGE;
      draw();
    },
  );
  draw();
  return section(
    "tables",
    "Layers, operations, kernels",
    null,
    h("div", { class: "toolbar" }, pick, h("div", { class: "search" }, filter, status)),
    view,
  );
}

// Rows that contain every word of `text` in path, name, device, cause or basis, ignoring case.
export function filtered(rows, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter((row) => {
    const all = `${row.path.join(" ")} ${row.name} ${row.device} ${row.cause ?? ""} ${row.basis}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

// Header cell of the column `one`: a click sorts by it, or reverses the order. `column`: the column by which the table
// is sorted. draw() redraws the table; the header keeps the focus.
export function sortableHead(one, column, state, draw) {
  const isSorted = one === column;
  const sortBy = () => {
    state.down = state.sort === one.key ? !state.down : one.first !== 1;
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
      "aria-sort": isSorted ? (state.down ? "descending" : "ascending") : "none",
    },
    h(
      "button",
      { type: "button", title: one.title, onclick: sortBy },
      one.text,
      h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (state.down ? "↓" : "↑") : ""),
    ),
  );
}

// Rows sorted by a column. Unknown values come last in both directions.
export function sorted(rows, column, down) {
  const sign = down ? -1 : 1;
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
  const list = columns(data);
  const column = list.find((one) => one.key === state.sort) ?? list[2];
  const rows = filtered(state.level.rows, state.filter);
  const ordered = sorted(rows, column, state.down);
  const visible = ordered.slice(0, state.shown);
  const shorter = (state.level.shorter ??= shortNamesOfRows(state.level.rows));
  const most = Math.max(...rows.filter((row) => !isProbe(row)).map((row) => row.energy_j ?? 0), 0);
  status.textContent = state.filter
    ? `${whole(rows.length)} of ${whole(state.level.rows.length)} rows, ${joules(sumOf(rows))}`
    : `${whole(state.level.rows.length)} rows`;
  const head = (one) => sortableHead(one, column, state, draw);
  const table = h(
    "table",
    { class: "rows" },
    h("caption", { class: "hidden" }, `${TITLES[state.level.by]}, sorted by ${column.text}`),
    h("thead", {}, h("tr", {}, list.map(head))),
    h(
      "tbody",
      {},
      visible.map((row) =>
        h(
          "tr",
          {},
          list.map((one) => cell(row, one, most, shorter)),
        ),
      ),
    ),
    h("tfoot", {}, footer(state, ordered, visible, list.length)),
  );
  const parts = [
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": TITLES[state.level.by] }, table),
  ];
  if (visible.length < ordered.length) {
    parts.push(
      h(
        "button",
        {
          type: "button",
          class: "more",
          onclick: () => {
            state.shown += 5 * PAGE;
            draw();
          },
        },
        `Show ${whole(Math.min(5 * PAGE, ordered.length - visible.length))} more`,
      ),
    );
  }
  parts.push(ledgerLine(data, state.level));
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
      row.path.slice(0, -1).map((part) => [nameText(part, shorter), " "]),
      h("span", { class: "on-phone" }, row.device),
    ),
    h("span", {}, row.path.length > 1 ? nameText(row.path[row.path.length - 1], shorter) : name),
  );
}

function cell(row, column, most, shorter) {
  const value = column.value(row);
  switch (column.key) {
    case "name":
      return nameCell(row, row.name, shorter);
    case "energy_j":
      return h(
        "td",
        { class: "number energy", title: intervalText(row), "data-value": value },
        whisker(row, most),
        h("span", {}, joules(value, 4)),
      );
    case "interval":
      return h("td", { class: "number unit" }, plusMinusText(row));
    case "waiting_j":
      return h("td", { class: "number", title: waitingInterval(row) }, joules(value));
    case "per_step":
      return h("td", { class: "number" }, joules(value));
    case "share":
      return h("td", { class: "number" }, percent(value));
    case "power_w":
      return h("td", { class: "number" }, watts(value));
    case "time_s":
      return h("td", { class: "number" }, secondsText(value));
    case "count":
      return h("td", { class: "number" }, whole(value));
    case "cause":
      return h("td", {}, value && h("span", { class: "basis", title: CAUSES[row.cause_basis] }, value));
    case "basis":
      return h("td", {}, h("span", { class: "basis", title: BASES[value] ?? value }, value));
    default:
      return h("td", {}, value);
  }
}

const waitingInterval = (row) =>
  row.waiting_low_j === null ? null : `${joules(row.waiting_low_j)} to ${joules(row.waiting_high_j)}`;

// Bar of the energy of a row, with its interval as a whisker. `most`: energy at the full length, in J.
function whisker(row, most) {
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

function footer(state, ordered, visible, width) {
  const line = (name, energy_j) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}),
      h("td", { class: "number" }, joules(energy_j, 4)),
      h("td", { colspan: String(width - 3) }),
    );
  const lines = [];
  const hidden = ordered.slice(visible.length);
  if (hidden.length) lines.push(line(`and ${whole(hidden.length)} more`, sumOf(hidden)));
  const { rest } = state.level;
  if (rest && !state.filter) lines.push(line(`and ${whole(rest.rows)} more, not in this file`, rest.energy_j));
  if (state.filter || state.level.attributed_j === null) return lines;
  lines.push(
    line("idle", state.level.idle_j),
    line("not attributed", unrounded(state.level.unattributed_j, wholeOf(state.level))),
  );
  return lines;
}
