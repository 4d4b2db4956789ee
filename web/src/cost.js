// SPDX-License-Identifier: Apache-2.0
// The sections "Measurement overhead" (cost of recording, probing and dithering) and "Notes on the data".
import { h, pageSection } from "./dom.js";
import { formatJoules, formatPercent, formatSeconds, formatInteger, formatWithUnit } from "./format.js";
import { ledgerSummaryList } from "./ledger.js";
import { noteListItem } from "./note_help.js";

export function overheadSection(data) {
  const { run } = data;
  const { cpu_s, probe_s, probe_j, dither_s } = run.overhead;
  const all_j = run.measured_j ?? run.estimated_j;
  const rows = [
    [
      "CPU time of the recorder",
      cpu_s === null ? "unknown: the recording was cut off" : formatSeconds(cpu_s),
      cpu_s === null ? "" : `${formatPercent(cpu_s / run.elapsed_s)} of one CPU`,
    ],
    [
      "Probing (replay of modules)",
      probe_s === null ? "none" : formatSeconds(probe_s),
      probe_j === null
        ? ""
        : `${formatJoules(probe_j)}, ${formatPercent(probe_j / all_j)} of the total; not included in values per step`,
    ],
    [
      "Dithering (pauses of the program)",
      dither_s === null ? "none" : formatSeconds(dither_s),
      dither_s === null ? "" : `${formatPercent(dither_s / run.elapsed_s)} of the run time`,
    ],
    [
      "Sensor samples",
      formatInteger(run.samples),
      run.elapsed_s > 0 ? `${formatWithUnit(run.samples / run.elapsed_s, "/s")}` : "",
    ],
    ["Recording size", formatWithUnit(run.file_bytes, "B"), ""],
  ];
  return pageSection(
    "cost",
    "Measurement overhead",
    null,
    h(
      "table",
      { class: "plain" },
      h("caption", { class: "hidden" }, "Measurement overhead"),
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
    ledgerSummaryList(data, data.levels[0]),
  );
}

export function notesSection(data) {
  const list = data.notes.map((note) => noteListItem(note, note.count > 1 ? `${formatInteger(note.count)} times` : null));
  return pageSection(
    "notes",
    "Notes on the data",
    list.length
      ? "Faults of the recording and their effect on the values."
      : "No faults were found in the data.",
    list.length ? h("ul", { class: "notes" }, list) : null,
  );
}
