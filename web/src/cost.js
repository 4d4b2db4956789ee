// SPDX-License-Identifier: Apache-2.0
// Overhead of Joulemap itself, and problems with the data.
import { h, section } from "./dom.js";
import { joules, percent, secondsText, whole, withUnit } from "./format.js";
import { ledgerLine } from "./ledger.js";

export function cost(data) {
  const { run } = data;
  const { cpu_s, probe_s, probe_j, dither_s } = run.overhead;
  const all_j = run.measured_j ?? run.estimated_j;
  const rows = [
    [
      "CPU time of the recorder",
      cpu_s === null ? "not known: it was cut off" : secondsText(cpu_s),
      cpu_s === null ? "" : `${percent(cpu_s / run.elapsed_s)} of one CPU`,
    ],
    [
      "Replaying modules (probing)",
      probe_s === null ? "none" : secondsText(probe_s),
      probe_j === null
        ? ""
        : `${joules(probe_j)}, ${percent(probe_j / all_j)} of what was drawn; no part of the figures per step`,
    ],
    [
      "Holding the program up (dithering)",
      dither_s === null ? "none" : secondsText(dither_s),
      dither_s === null ? "" : `${percent(dither_s / run.elapsed_s)} of the time`,
    ],
    [
      "Readings of sensors",
      whole(run.samples),
      run.elapsed_s > 0 ? `${withUnit(run.samples / run.elapsed_s, "/s")}` : "",
    ],
    ["The recording", withUnit(run.file_bytes, "B"), ""],
  ];
  return section(
    "cost",
    "What measuring cost",
    null,
    h(
      "table",
      { class: "plain" },
      h("caption", { class: "hidden" }, "What measuring cost"),
      h(
        "tbody",
        {},
        rows.map(([name, value, note]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", { class: "number" }, value),
            h("td", { class: "unit" }, note),
          ),
        ),
      ),
    ),
    ledgerLine(data, data.levels[0]),
  );
}

export function notes(data) {
  const list = data.notes.map((note) =>
    h(
      "li",
      {},
      h("p", {}, note.message, note.count > 1 ? h("span", { class: "unit" }, ` ${whole(note.count)} times`) : null),
      h("p", { class: "unit" }, h("code", {}, note.code), note.remedy ? ` · ${note.remedy}` : ""),
    ),
  );
  return section(
    "notes",
    "Notes on the data",
    list.length
      ? "What was odd about the recording, and what it means for the numbers."
      : "Every reading was good, and nothing was lost on the way.",
    list.length ? h("ul", { class: "notes" }, list) : null,
  );
}
