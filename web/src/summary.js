// SPDX-License-Identifier: Apache-2.0
// The section "Summary": what ran, its energy, and energy by phase and component.
import { makeStackedBar } from "./bars.js";
import { h, quantityElement, pageSection } from "./dom.js";
import {
  formatCount,
  formatInteger,
  formatJoules,
  formatSeconds,
  formatWatts,
  toNumberAndUnit,
  toRateAndUnit,
} from "./format.js";
import { colourProperty, ledgerSummaryList, energyByPhase } from "./ledger.js";
import { makeActiveAndIdleBar } from "./waiting.js";

export function pageTitle(data) {
  const command = data.run.command.map((part) => part.split("/").pop());
  return command.join(" ") || data.run.inputs.map((path) => path.split("/").pop()).join(", ");
}

function keyFigureElement(label, value, note) {
  return h(
    "div",
    { class: "figure" },
    h("dt", {}, label),
    h("dd", {}, quantityElement(value), note ? h("span", { class: "figure-note" }, note) : null),
  );
}

function totalEnergyElement(data) {
  const { figures, run } = data;
  const all_j = run.measured_j ?? run.estimated_j;
  if (all_j === null) return h("p", { class: "hero-note" }, "The energy of this run is unknown; see the notes below.");
  const half_j = figures.is_estimated ? run.estimated_uncertainty_j : run.measured_uncertainty_j;
  return [
    h("p", { class: "hero" }, quantityElement(toNumberAndUnit(all_j, "J", 4))),
    h(
      "p",
      { class: "hero-note" },
      h(
        "span",
        { class: `badge ${figures.is_estimated ? "estimated" : "measured"}` },
        figures.is_estimated ? "estimated" : "measured",
      ),
      ` ± ${formatJoules(half_j, 2)} (${formatInteger(100 * run.interval)} % interval) `,
      `in ${formatSeconds(run.elapsed_s, 4)}, `,
      `${formatWatts(all_j / run.elapsed_s)} mean power`,
      run.measured_j !== null && run.estimated_j !== null
        ? `; plus ${formatJoules(run.estimated_j)} estimated, not counted`
        : "",
    ),
  ];
}

function keyFigureList(data) {
  const { figures: of, run } = data;
  const list = [];
  const probingNote = run.overhead.probe_s ? "without probing" : null;
  if (of.command_j !== null)
    list.push(
      keyFigureElement("by the command", toNumberAndUnit(of.command_j, "J"), "the figures beside omit other processes"),
    );
  if (of.joules_per_step !== null)
    list.push(
      keyFigureElement(
        "per step",
        toNumberAndUnit(of.joules_per_step, "J"),
        `${formatCount(
          data.steps.reduce((sum, step) => sum + step.count, 0),
          "step",
        )}`,
      ),
    );
  if (of.joules_per_epoch !== null)
    list.push(
      keyFigureElement("per epoch", toNumberAndUnit(of.joules_per_epoch, "J"), formatCount(data.epochs.length, "epoch")),
    );
  if (of.joules_per_sample !== null)
    list.push(
      keyFigureElement(
        "per sample",
        toNumberAndUnit(of.joules_per_sample, "J"),
        `${formatInteger(of.samples)} samples`,
      ),
    );
  if (of.samples_per_s !== null) list.push(keyFigureElement("samples per second", toRateAndUnit(of.samples_per_s)));
  if (of.steps_per_s !== null) list.push(keyFigureElement("steps per second", toRateAndUnit(of.steps_per_s)));
  if (of.energy_delay_js !== null)
    list.push(keyFigureElement("energy-delay product", toNumberAndUnit(of.energy_delay_js, "J·s"), probingNote));
  return list.length ? h("dl", { class: "figures" }, list) : null;
}

// The result in words. joulemap writes the sentences (report/text/run_summary_sentences.h), so that they equal those of
// the text report.
function resultParagraph(data) {
  return h("p", { class: "answer" }, data.answer.join(" "));
}

// Ways to save energy, as joulemap advise prints them.
function findingList(data) {
  if (!data.findings.length) return null;
  return h(
    "div",
    { class: "findings" },
    h("h3", {}, "What to change"),
    h(
      "ol",
      {},
      data.findings.map((finding) =>
        h(
          "li",
          {},
          h("p", {}, h("b", {}, finding.title), ` – ${finding.saving}`),
          h("p", {}, finding.change),
          h("details", {}, h("summary", {}, "Evidence"), finding.evidence.map((text) => h("p", {}, text))),
        ),
      ),
    ),
  );
}

function phaseEnergyBar(data) {
  const parts = energyByPhase(data)?.map((part, index) => ({
    ...part,
    colour: colourProperty(part.name, index),
    hatched: part.name === "not attributed",
  }));
  return parts ? makeStackedBar("Energy by phase", parts) : null;
}

// Table of the energy of GPU, CPU, memory ..., and whether it was measured or estimated.
function componentTable(data) {
  if (!data.components.length) return null;
  // A component that is partly estimated has two rows: measured and estimated energy are never added.
  const rows = data.components.flatMap((one) =>
    ["measured", "estimated"]
      .filter((provenance) => one[`${provenance}_j`] !== null)
      .map((provenance) => ({
        name: one.name,
        provenance,
        energy_j: one[`${provenance}_j`],
        uncertainty_j: one[`${provenance}_uncertainty_j`],
      })),
  );
  const most = Math.max(...rows.map((one) => one.energy_j));
  return h(
    "figure",
    { class: "components" },
    h("figcaption", {}, "By component"),
    h(
      "table",
      { class: "bars" },
      h("caption", { class: "hidden" }, "Energy by component"),
      h(
        "thead",
        { class: "hidden" },
        h(
          "tr",
          {},
          ["component", "share", "energy", "provenance"].map((head) => h("th", { scope: "col" }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((one) => {
          const estimated = one.provenance === "estimated";
          return h(
            "tr",
            {},
            h("th", { scope: "row" }, one.name),
            h(
              "td",
              { class: "bar-cell", "aria-hidden": "true" },
              h("span", {
                class: estimated ? "estimate" : "measure",
                style: { width: `${(100 * one.energy_j) / most}%` },
              }),
            ),
            h(
              "td",
              { class: "number" },
              formatJoules(one.energy_j),
              h("span", { class: "unit" }, ` ± ${formatJoules(one.uncertainty_j, 2)}`),
            ),
            h("td", {}, h("span", { class: `badge ${one.provenance}` }, one.provenance)),
          );
        }),
      ),
    ),
  );
}

function domainTable(data) {
  const heads = ["Domain", "Energy", "±", "Mean power", "Source", "Counted"];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Energy by domain" },
    h(
      "table",
      { class: "plain" },
      h("caption", { class: "hidden" }, "Energy by domain"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, index) => h("th", { scope: "col", class: index > 0 && index < 4 ? "number" : null }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        data.domains.map((one) =>
          h(
            "tr",
            { class: one.counted ? null : "quiet" },
            h("th", { scope: "row" }, one.name),
            h(
              "td",
              { class: "number" },
              one.energy_j === null ? (one.reason ?? "unknown") : formatJoules(one.energy_j, 4),
            ),
            h("td", { class: "number" }, one.uncertainty_j === null ? "" : formatJoules(one.uncertainty_j, 2)),
            h("td", { class: "number" }, formatWatts(one.mean_w)),
            h(
              "td",
              {},
              [one.provenance, one.sensor].filter(Boolean).join(", "),
              one.model ? h("span", { class: "unit" }, ` ${one.model}`) : null,
            ),
            h("td", {}, one.counted ? "yes" : one.part_of ? `in ${one.part_of}` : "no"),
          ),
        ),
      ),
    ),
  );
}

function runMetadataDetails(data) {
  const { run } = data;
  const facts = [
    ["command", run.command.join(" ")],
    [
      "recorded",
      run.start_unix_ns
        ? new Date(run.start_unix_ns / 1e6)
            .toISOString()
            .replace("T", " ")
            .replace(/\.\d+Z/, " UTC")
        : null,
    ],
    ["machine", run.hosts.join(", ")],
    [
      "ended",
      run.signal !== null
        ? `by signal ${run.signal}`
        : run.exit_code !== null
          ? `with exit code ${run.exit_code}`
          : "unknown",
    ],
    ["recording", `${run.inputs.join(", ")}${run.complete ? ", complete" : ", incomplete"}`],
    ["joulemap", data.version],
    ...run.environment,
  ].filter(([, value]) => value);
  return h(
    "details",
    { class: "facts" },
    h("summary", {}, "Sources of the values"),
    domainTable(data),
    h(
      "dl",
      {},
      facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
  );
}

export function summarySection(data) {
  const { run } = data;
  const startTime = run.start_unix_ns
    ? new Date(run.start_unix_ns / 1e6).toISOString().slice(0, 16).replace("T", " ") + " UTC"
    : "";
  const level = data.level("phase") ?? data.levels[0];
  return pageSection(
    "summary",
    pageTitle(data),
    [run.hosts.join(", "), startTime, run.complete ? "" : "the recording is incomplete"].filter(Boolean).join(" · "),
    resultParagraph(data),
    findingList(data),
    h("div", { class: "answer-bar" }, makeActiveAndIdleBar(data)),
    h(
      "div",
      { class: "summary" },
      h("div", {}, totalEnergyElement(data), keyFigureList(data)),
      h("div", {}, phaseEnergyBar(data), componentTable(data)),
    ),
    runMetadataDetails(data),
    ledgerSummaryList(data, level),
  );
}
