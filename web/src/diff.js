// SPDX-License-Identifier: Apache-2.0
//
// The page of `diff A B --html`: energy per unit (such as a step) of both runs, and
// the entries that changed. Its data have the schema joulemap.diff/1.
import { choiceButtons, h, quantityElement, pageSection } from "./dom.js";
import { formatJoules, formatPercent, formatCount, toNumberAndUnit, formatSeconds, formatInteger } from "./format.js";
import { shortNamesOfRows } from "./names.js";
import { noteListItem } from "./note_help.js";
import { filterRows, nameCell, sortableHeaderCell, sortRows } from "./tables.js";
import { sumIdleByCause } from "./waiting.js";

const ROWS_PER_PAGE = 60;
const VERDICT_LABELS = {
  grew: "Grew",
  shrank: "Shrank",
  new: "New",
  gone: "Gone",
  within_noise: "Within the noise",
  unknown: "Unknown",
};
const VERDICT_SENTENCES = {
  grew: "B uses more energy, beyond the noise.",
  shrank: "B uses less energy, beyond the noise.",
  within_noise: "The difference is within the noise.",
  unknown: "The uncertainty of the difference is unknown.",
};

const COMPARISON_SCOPE_TEXTS = { steady: "in steady state", whole_run: "over whole runs" };

const inputFileNames = (run) => run.inputs.map((path) => path.split("/").pop()).join(", ");
const addPlusSign = (value, text) => (value > 0 ? `+${text}` : text);
const relativeChangeText = (entry) =>
  entry.relative === null ? "–" : addPlusSign(entry.relative, formatPercent(entry.relative));
const differenceText = (entry) =>
  entry.difference_j === null ? "–" : addPlusSign(entry.difference_j, formatJoules(entry.difference_j));

export function diffTitle(data) {
  return `${inputFileNames(data.a)} → ${inputFileNames(data.b)}`;
}

export function diffSections(data) {
  return [summarySection(data), differenceCausesSection(data), diffEntriesSection(data), notesSection(data)].filter(Boolean);
}

function summarySection(data) {
  const { total } = data;
  const share = total.relative === null ? ["–"] : [addPlusSign(total.relative, (100 * total.relative).toFixed(1)), "%"];
  const interval =
    total.low_j === null
      ? ""
      : ` ${formatInteger(100 * data.interval)} % interval: ${formatJoules(total.low_j)} to ${formatJoules(total.high_j)}.`;
  const smallest =
    data.smallest_change === null ? "" : ` Smallest detectable change: ${formatPercent(data.smallest_change)}.`;
  const gate = data.failed === true ? ` Failed: the limit is ${formatPercent(data.fail_over)}.` : "";
  return pageSection(
    "summary",
    diffTitle(data),
    `Energy per ${data.per} ${COMPARISON_SCOPE_TEXTS[data.state]}, by ${data.by}; ${data.domains.join(", ")}`,
    h("p", { class: "answer" }, `${verdictText(data)}${gate}`),
    h("p", { class: `hero ${total.verdict}` }, quantityElement(share)),
    h("p", { class: "hero-note" }, `${interval}${smallest}`.trim()),
    activeAndIdleTable(data),
    h(
      "div",
      { class: "versus" },
      comparedRunSummary("A", data.a, total.a, data.per),
      comparedRunSummary("B", data.b, total.b, data.per),
    ),
  );
}

// The verdict in words, and the entry that changed most.
function verdictText(data) {
  const { total } = data;
  const verdict = VERDICT_SENTENCES[total.verdict] ?? "";
  if (!total.a || !total.b) return `${verdict} The energy of a run is unknown.`.trim();
  const change = total.relative === null ? "" : ` (${relativeChangeText(total)})`;
  const energies = `A used ${formatJoules(total.a.energy_j)} per ${data.per}, B ${formatJoules(total.b.energy_j)}${change}.`;
  const [largest] = data.entries.filter((entry) => !["within_noise", "unknown"].includes(entry.verdict));
  if (!largest) return `${verdict} ${energies} No single entry changed beyond the noise.`;
  const name = [...largest.path, ...(largest.device ? ["on", largest.device] : [])].join(" ");
  return `${verdict} ${energies} The largest change: ${name}, ${differenceText(largest)}.`;
}

// By operator: why the energies differ.
function differenceCausesSection(data) {
  if (!data.causes.length) return null;
  const item = (cause) =>
    h(
      "li",
      {},
      h("b", {}, `${addPlusSign(cause.difference_j, formatJoules(cause.difference_j))} ${cause.code}`),
      `: ${cause.text}`,
    );
  return pageSection(
    "causes",
    "Causes",
    `By their part of the difference, in joules per ${data.per}. They are read from names, shapes and counts.`,
    h("ul", {}, data.causes.map(item)),
  );
}

// A table of both runs: energy while devices were active, and idle energy by cause.
function activeAndIdleTable(data) {
  const { a, b } = data.total;
  if (!a || !b || !data.idle.length) return null;
  const side = (key) => sumIdleByCause(data.idle.map((one) => ({ ...one, energy_j: one[key] })));
  const [ofA, ofB] = [side("a_j"), side("b_j")];
  const names = [...new Set([...ofA, ...ofB].map((one) => one.name))];
  const findEnergy = (list, name) => list.find((one) => one.name === name)?.energy_j ?? 0;
  const sum = (list) => list.reduce((all, one) => all + one.energy_j, 0);
  const rows = [
    ["active and not attributed", a.energy_j - sum(ofA), b.energy_j - sum(ofB)],
    ...names.map((name) => [name, findEnergy(ofA, name), findEnergy(ofB, name)]),
  ].filter(([, a_j, b_j]) => a_j !== 0 || b_j !== 0);
  const most = Math.max(...rows.flatMap(([, a_j, b_j]) => [a_j, b_j]), 1e-12);
  const bar = (energy_j, colour) =>
    h("span", { style: { width: `${Math.max((100 * energy_j) / most, 0)}%`, background: `var(${colour})` } });
  const heads = ["", "A above B", "A", "B", "B − A"];
  return h(
    "div",
    { class: "scroll waits-versus", tabindex: "0", role: "region", "aria-label": "Active and waiting energy" },
    h(
      "table",
      { class: "bars" },
      h("caption", { class: "step-caption" }, `Active and waiting energy per ${data.per}`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, index) =>
            h(index ? "th" : "td", { scope: index ? "col" : null, class: index > 1 ? "number" : null }, head),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([name, a_j, b_j]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", { class: "bar-cell two", "aria-hidden": "true" }, bar(a_j, "--part-idle"), bar(b_j, "--part-1")),
            h("td", { class: "number" }, formatJoules(a_j)),
            h("td", { class: "number" }, formatJoules(b_j)),
            h("td", { class: "number" }, addPlusSign(b_j - a_j, formatJoules(b_j - a_j))),
          ),
        ),
      ),
    ),
  );
}

function excludedPartsText(side) {
  const parts = side.recordings.map((recording) => recording.left_out);
  if (parts.some((part) => part === null)) return "nothing: whole runs";
  const sum = (key) => parts.reduce((sum_j, part) => sum_j + (part[key] ?? 0), 0);
  const steps = formatCount(sum("warm_up_steps") + sum("long_steps"), "step");
  return `${steps}, start-up and the last step: ${formatSeconds(sum("time_s"))}, ${formatJoules(sum("energy_j"))}`;
}

function comparedRunSummary(letter, side, energy, per) {
  const rows = [
    [`energy per ${per}`, energy ? quantityElement(toNumberAndUnit(energy.energy_j, "J", 4)) : "–"],
    [`time per ${per}`, formatSeconds(side.time_s)],
    [`${per}s`, formatInteger(side.units)],
    ["recordings", formatInteger(side.recordings.length)],
    ["variation between steps", side.scatter === null ? "unknown" : `± ${formatPercent(side.scatter)} of their mean`],
    ["excluded", excludedPartsText(side)],
    ["provenance", h("span", { class: `badge ${side.provenance}` }, side.provenance)],
    ["command", side.command.join(" ")],
  ];
  return h(
    "div",
    {},
    h("h2", {}, `${letter} `, h("span", { class: "unit" }, inputFileNames(side))),
    h(
      "dl",
      { class: "facts-list" },
      rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
  );
}

const DIFF_ENTRY_COLUMNS = [
  { key: "name", text: "Name", value: (row) => row.path.join(" ").toLowerCase(), first: 1 },
  { key: "device", text: "Device", value: (row) => row.device, first: 1 },
  { key: "a", text: "A", value: (row) => row.a?.energy_j ?? null, number: true },
  { key: "b", text: "B", value: (row) => row.b?.energy_j ?? null, number: true },
  {
    key: "size",
    text: "B − A",
    value: (row) => (row.difference_j === null ? null : Math.abs(row.difference_j)),
    number: true,
  },
  { key: "relative", text: "Change", value: (row) => row.relative, number: true },
  { key: "verdict", text: "Verdict", value: (row) => row.verdict, first: 1 },
];

function diffEntriesSection(data) {
  const rows = data.entries.map((row) => ({ ...row, device: row.device ?? "", basis: row.verdict }));
  const count = (verdict) => rows.filter((row) => row.verdict === verdict).length;
  const state = { verdict: "all", filter: "", sort: "size", isDescending: true, shownRowCount: ROWS_PER_PAGE };
  const view = h("div", {});
  const status = h("output", { class: "found", for: "table-filter" });
  const shorter = shortNamesOfRows(rows);
  const draw = () => view.replaceChildren(...drawDiffEntryTable(rows, state, status, draw, shorter));
  const change = (values) => {
    Object.assign(state, values, { shownRowCount: ROWS_PER_PAGE });
    draw();
  };
  const verdicts = Object.keys(VERDICT_LABELS)
    .filter(count)
    .map((name) => [name, `${VERDICT_LABELS[name]} ${count(name)}`]);
  const filter = h("input", {
    id: "table-filter",
    type: "search",
    placeholder: "Filter: conv backward",
    "aria-label": "Filter rows",
    oninput: (event) => change({ filter: event.target.value }),
  });
  draw();
  return pageSection(
    "tables",
    "Energy changes",
    `Joules per ${data.per}. Lines at bars: interval of the difference, adjusted for the number of entries.`,
    h(
      "div",
      { class: "toolbar" },
      choiceButtons("Verdict", [["all", "All"], ...verdicts], (verdict) => change({ verdict })),
      h("div", { class: "search" }, filter, status),
    ),
    view,
  );
}

function drawDiffEntryTable(rows, state, status, draw, shorter) {
  const matchingRows = filterRows(
    rows.filter((row) => state.verdict === "all" || row.verdict === state.verdict),
    state.filter,
  );
  const column = DIFF_ENTRY_COLUMNS.find((candidate) => candidate.key === state.sort);
  const ordered = sortRows(matchingRows, column, state.isDescending);
  const visible = ordered.slice(0, state.shownRowCount);
  const most = Math.max(...rows.map((row) => Math.abs(row.difference_j ?? 0)), 1e-12);
  const sum_j = matchingRows.reduce((sum, row) => sum + (row.difference_j ?? 0), 0);
  status.textContent = `${formatCount(matchingRows.length, "row")}, ${addPlusSign(sum_j, formatJoules(sum_j))}`;
  const head = (title) => sortableHeaderCell(title, column, state, draw);
  const table = h(
    "table",
    { class: "rows" },
    h("caption", { class: "hidden" }, `Differences, sorted by ${column.text}`),
    h("thead", {}, h("tr", {}, DIFF_ENTRY_COLUMNS.map(head))),
    h(
      "tbody",
      {},
      visible.map((row) => h("tr", {}, diffEntryCells(row, most, shorter))),
    ),
  );
  const parts = [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Differences" }, table)];
  if (visible.length < ordered.length) {
    const more = Math.min(5 * ROWS_PER_PAGE, ordered.length - visible.length);
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
        `Show ${formatInteger(more)} more`,
      ),
    );
  }
  return parts;
}

function diffEntryCells(row, most, shorter) {
  const energyCell = (side) => h("td", { class: "number" }, side ? formatJoules(side.energy_j, 4) : "–");
  return [
    nameCell(row, row.display_name, shorter),
    h("td", {}, row.device),
    energyCell(row.a),
    energyCell(row.b),
    h("td", { class: "number energy" }, divergingBar(row, most), h("span", {}, differenceText(row))),
    h("td", { class: "number" }, relativeChangeText(row)),
    h("td", {}, h("span", { class: `verdict ${row.verdict}` }, VERDICT_LABELS[row.verdict] ?? row.verdict)),
  ];
}

// The bar of an entry: increases extend to the right, decreases to the left. `most`: difference at the full length, in
// J.
function divergingBar(row, most) {
  if (row.difference_j === null) return null;
  const at = (value) => Math.max(0, Math.min(100, 50 + (50 * value) / most));
  const [from, to] = [Math.min(at(0), at(row.difference_j)), Math.max(at(0), at(row.difference_j))];
  return h(
    "span",
    { class: `whisker divergence ${row.verdict}`, "aria-hidden": "true" },
    h("i", { style: { left: `${from}%`, width: `${to - from}%` } }),
    row.low_j !== null ? h("em", { style: { left: `${at(row.low_j)}%`, right: `${100 - at(row.high_j)}%` } }) : null,
  );
}

function notesSection(data) {
  const list = data.diagnostics.map((note) => noteListItem(note));
  return pageSection(
    "notes",
    "Notes on the data",
    list.length ? null : "No faults were found in the recordings.",
    list.length ? h("ul", { class: "notes" }, list) : null,
  );
}
