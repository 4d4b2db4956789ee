// SPDX-License-Identifier: Apache-2.0
// The page of `diff A B`: energy of a step in each run, and the layers that cause the difference. Data:
// joulemap.diff/1.
import { choice, h, quantity, section } from "./dom.js";
import { joules, percent, plural, scaled, secondsText, whole } from "./format.js";
import { filtered, sortableHead, sorted } from "./tables.js";

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
    h("p", { class: `hero ${total.verdict}` }, quantity(share)),
    h("p", { class: "hero-note" }, `${VERDICT_SENTENCES[total.verdict] ?? ""}${interval}${smallest}${gate}`),
    h("div", { class: "versus" }, run("A", data.a, total.a, data.per), run("B", data.b, total.b, data.per)),
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
  const draw = () => view.replaceChildren(...drawTable(rows, state, status, draw));
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

function drawTable(rows, state, status, draw) {
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
      visible.map((row) => h("tr", {}, cells(row, most))),
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

function cells(row, most) {
  const last = row.path.length > 1 ? row.path[row.path.length - 1] : row.display_name;
  const energyCell = (side) => h("td", { class: "number" }, side ? joules(side.energy_j, 4) : "–");
  return [
    h(
      "th",
      { scope: "row", class: "name", title: row.path.join(" › ") },
      h(
        "span",
        { class: "path" },
        row.path.slice(0, -1).map((part) => `${part} `),
        h("span", { class: "on-phone" }, row.device),
      ),
      h("span", {}, last),
    ),
    h("td", {}, row.device),
    energyCell(row.a),
    energyCell(row.b),
    h("td", { class: "number energy" }, divergence(row, most), h("span", {}, differenceText(row))),
    h("td", { class: "number" }, changeText(row)),
    h("td", {}, h("span", { class: `verdict ${row.verdict}` }, VERDICTS[row.verdict] ?? row.verdict)),
  ];
}

// Increases extend to the right, decreases to the left.
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
  const list = data.diagnostics.map((note) =>
    h(
      "li",
      {},
      h("p", {}, note.message),
      h("p", { class: "unit" }, h("code", {}, note.code), note.remedy ? ` · ${note.remedy}` : ""),
    ),
  );
  return section(
    "notes",
    "Notes on the data",
    list.length ? null : "No faults were found in the recordings.",
    list.length ? h("ul", { class: "notes" }, list) : null,
  );
}
