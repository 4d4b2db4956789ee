// SPDX-License-Identifier: Apache-2.0
//
// The page of `diff A B --html`: energy per unit (such as a step) of both runs, and
// the entries that changed. Its data have the schema joulemap.diff/1.
import { choice, h, quantity, section } from "./dom.js";
import { joules, percent, plural, scaled, secondsText, whole } from "./format.js";
import { shortNamesOfRows } from "./names.js";
import { noteItem } from "./note_help.js";
import { filtered, nameCell, sortableHead, sorted } from "./tables.js";
import { idleByText } from "./waiting.js";

const PAGE = 60;
const VERDICTS = {
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

const STATES = { steady: "in steady state", whole_run: "over whole runs" };

const fileNames = (run) => run.inputs.map((path) => path.split("/").pop()).join(", ");
const signed = (value, text) => (value > 0 ? `+${text}` : text);
const changeText = (entry) => (entry.relative === null ? "–" : signed(entry.relative, percent(entry.relative)));
const differenceText = (entry) =>
  entry.difference_j === null ? "–" : signed(entry.difference_j, joules(entry.difference_j));

export function diffTitle(data) {
  return `${fileNames(data.a)} → ${fileNames(data.b)}`;
}

export function diffSections(data) {
  return [summary(data), entries(data), notes(data)];
}

function summary(data) {
  const { total } = data;
  const share = total.relative === null ? ["–"] : [signed(total.relative, (100 * total.relative).toFixed(1)), "%"];
  const interval =
    total.low_j === null
      ? ""
      : ` ${whole(100 * data.interval)} % interval: ${joules(total.low_j)} to ${joules(total.high_j)}.`;
  const smallest =
    data.smallest_change === null ? "" : ` Smallest detectable change: ${percent(data.smallest_change)}.`;
  const gate = data.failed === true ? ` Failed: the limit is ${percent(data.fail_over)}.` : "";
  return section(
    "summary",
    diffTitle(data),
    `Energy per ${data.per} ${STATES[data.state]}, by ${data.by}; ${data.domains.join(", ")}`,
    h("p", { class: "answer" }, `${answer(data)}${gate}`),
    h("p", { class: `hero ${total.verdict}` }, quantity(share)),
    h("p", { class: "hero-note" }, `${interval}${smallest}`.trim()),
    activeAndWaiting(data),
    h("div", { class: "versus" }, run("A", data.a, total.a, data.per), run("B", data.b, total.b, data.per)),
  );
}

// The verdict in words, and the entry that changed most.
function answer(data) {
  const { total } = data;
  const verdict = VERDICT_SENTENCES[total.verdict] ?? "";
  if (!total.a || !total.b) return `${verdict} The energy of a run is unknown.`.trim();
  const change = total.relative === null ? "" : ` (${changeText(total)})`;
  const energies = `A used ${joules(total.a.energy_j)} per ${data.per}, B ${joules(total.b.energy_j)}${change}.`;
  const [largest] = data.entries.filter((entry) => !["within_noise", "unknown"].includes(entry.verdict));
  if (!largest) return `${verdict} ${energies} No single entry changed beyond the noise.`;
  const name = [...largest.path, ...(largest.device ? ["on", largest.device] : [])].join(" ");
  return `${verdict} ${energies} The largest change: ${name}, ${differenceText(largest)}.`;
}

// A table of both runs: energy while devices were active, and idle energy by cause.
function activeAndWaiting(data) {
  const { a, b } = data.total;
  if (!a || !b || !data.idle.length) return null;
  const side = (key) => idleByText(data.idle.map((one) => ({ ...one, energy_j: one[key] })));
  const [ofA, ofB] = [side("a_j"), side("b_j")];
  const names = [...new Set([...ofA, ...ofB].map((one) => one.name))];
  const energyOf = (list, name) => list.find((one) => one.name === name)?.energy_j ?? 0;
  const sum = (list) => list.reduce((all, one) => all + one.energy_j, 0);
  const rows = [
    ["active and not attributed", a.energy_j - sum(ofA), b.energy_j - sum(ofB)],
    ...names.map((name) => [name, energyOf(ofA, name), energyOf(ofB, name)]),
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
            h("td", { class: "number" }, joules(a_j)),
            h("td", { class: "number" }, joules(b_j)),
            h("td", { class: "number" }, signed(b_j - a_j, joules(b_j - a_j))),
          ),
        ),
      ),
    ),
  );
}

function leftOutText(side) {
  const parts = side.recordings.map((recording) => recording.left_out);
  if (parts.some((part) => part === null)) return "nothing: whole runs";
  const sum = (key) => parts.reduce((sum_j, part) => sum_j + (part[key] ?? 0), 0);
  const steps = plural(sum("warm_up_steps") + sum("long_steps"), "step");
  return `${steps}, start-up and the last step: ${secondsText(sum("time_s"))}, ${joules(sum("energy_j"))}`;
}

function run(letter, side, energy, per) {
  const rows = [
    [`energy per ${per}`, energy ? quantity(scaled(energy.energy_j, "J", 4)) : "–"],
    [`time per ${per}`, secondsText(side.time_s)],
    [`${per}s`, whole(side.units)],
    ["recordings", whole(side.recordings.length)],
    ["variation between steps", side.scatter === null ? "unknown" : `± ${percent(side.scatter)} of their mean`],
    ["excluded", leftOutText(side)],
    ["provenance", h("span", { class: `badge ${side.provenance}` }, side.provenance)],
    ["command", side.command.join(" ")],
  ];
  return h(
    "div",
    {},
    h("h2", {}, `${letter} `, h("span", { class: "unit" }, fileNames(side))),
    h(
      "dl",
      { class: "facts-list" },
      rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
  );
}

const COLUMNS = [
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

function entries(data) {
  const rows = data.entries.map((row) => ({ ...row, device: row.device ?? "", basis: row.verdict }));
  const count = (verdict) => rows.filter((row) => row.verdict === verdict).length;
  const state = { verdict: "all", filter: "", sort: "size", down: true, shown: PAGE };
  const view = h("div", {});
  const status = h("output", { class: "found", for: "table-filter" });
  const shorter = shortNamesOfRows(rows);
  const draw = () => view.replaceChildren(...drawTable(rows, state, status, draw, shorter));
  const change = (values) => {
    Object.assign(state, values, { shown: PAGE });
    draw();
  };
  const verdicts = Object.keys(VERDICTS)
    .filter(count)
    .map((name) => [name, `${VERDICTS[name]} ${count(name)}`]);
  const filter = h("input", {
    id: "table-filter",
    type: "search",
    placeholder: "Filter: conv backward",
    "aria-label": "Filter rows",
    oninput: (event) => change({ filter: event.target.value }),
  });
  draw();
  return section(
    "tables",
    "Energy changes",
    `Joules per ${data.per}. Lines at bars: interval of the difference, adjusted for the number of entries.`,
    h(
      "div",
      { class: "toolbar" },
      choice("Verdict", [["all", "All"], ...verdicts], (verdict) => change({ verdict })),
      h("div", { class: "search" }, filter, status),
    ),
    view,
  );
}

function drawTable(rows, state, status, draw, shorter) {
  const matchingRows = filtered(
    rows.filter((row) => state.verdict === "all" || row.verdict === state.verdict),
    state.filter,
  );
  const column = COLUMNS.find((candidate) => candidate.key === state.sort);
  const ordered = sorted(matchingRows, column, state.down);
  const visible = ordered.slice(0, state.shown);
  const most = Math.max(...rows.map((row) => Math.abs(row.difference_j ?? 0)), 1e-12);
  const sum_j = matchingRows.reduce((sum, row) => sum + (row.difference_j ?? 0), 0);
  status.textContent = `${plural(matchingRows.length, "row")}, ${signed(sum_j, joules(sum_j))}`;
  const head = (title) => sortableHead(title, column, state, draw);
  const table = h(
    "table",
    { class: "rows" },
    h("caption", { class: "hidden" }, `Differences, sorted by ${column.text}`),
    h("thead", {}, h("tr", {}, COLUMNS.map(head))),
    h(
      "tbody",
      {},
      visible.map((row) => h("tr", {}, cells(row, most, shorter))),
    ),
  );
  const parts = [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Differences" }, table)];
  if (visible.length < ordered.length) {
    const more = Math.min(5 * PAGE, ordered.length - visible.length);
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
        `Show ${whole(more)} more`,
      ),
    );
  }
  return parts;
}

function cells(row, most, shorter) {
  const energyCell = (side) => h("td", { class: "number" }, side ? joules(side.energy_j, 4) : "–");
  return [
    nameCell(row, row.display_name, shorter),
    h("td", {}, row.device),
    energyCell(row.a),
    energyCell(row.b),
    h("td", { class: "number energy" }, divergence(row, most), h("span", {}, differenceText(row))),
    h("td", { class: "number" }, changeText(row)),
    h("td", {}, h("span", { class: `verdict ${row.verdict}` }, VERDICTS[row.verdict] ?? row.verdict)),
  ];
}

// The bar of an entry: increases extend to the right, decreases to the left. `most`: difference at the full length, in
// J.
function divergence(row, most) {
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

function notes(data) {
  const list = data.diagnostics.map((note) => noteItem(note));
  return section(
    "notes",
    "Notes on the data",
    list.length ? null : "No faults were found in the recordings.",
    list.length ? h("ul", { class: "notes" }, list) : null,
  );
}
