// SPDX-License-Identifier: Apache-2.0
// Entry point of the page: reads the embedded JSON and draws the sections.
import "uplot/dist/uPlot.min.css";
import "./style/colours.css";
import "./style/summary.css";
import "./style/page.css";
import "./style/pictures.css";
import "./style/charts.css";
import "./style/tables.css";
import "./style/diff.css";
import "./style/steps.css";
import { overheadSection, notesSection } from "./cost.js";
import { parsePageData } from "./data.js";
import { diffSections, diffTitle } from "./diff.js";
import { h } from "./dom.js";
import { flameSection } from "./flame.js";
import { lossSection } from "./loss.js";
import { stepsSection } from "./steps.js";
import { summarySection, pageTitle } from "./summary.js";
import { tablesSection } from "./tables.js";
import { themeButton } from "./theme.js";
import { timelineSection } from "./timeline.js";
import { violinsSection } from "./violin.js";

const pageJson = document.getElementById("joulemap-data").textContent;

function runTitleAndSections() {
  const data = parsePageData(pageJson);
  const parts = [
    summarySection,
    flameSection,
    stepsSection,
    timelineSection,
    tablesSection,
    violinsSection,
    lossSection,
    overheadSection,
    notesSection,
  ];
  return [pageTitle(data), parts.map((part) => part(data)).filter(Boolean)];
}

function diffTitleAndSections(data) {
  return [diffTitle(data), diffSections(data)];
}

const schema = JSON.parse(pageJson).schema;
const [name, sections] = schema === "joulemap.diff/1" ? diffTitleAndSections(JSON.parse(pageJson)) : runTitleAndSections();
document.title = `${name} · Joulemap`;
const navigationTitles = {
  summary: "Summary",
  flame: "Flame graph",
  steps: "Steps",
  timeline: "Power",
  tables: "Tables",
  violins: "Variation",
  loss: "Loss",
  cost: "Overhead",
  notes: "Notes",
};

document.body.prepend(
  h("a", { class: "skip", href: "#page" }, "Skip to the report"),
  h(
    "header",
    { class: "bar-top" },
    h("a", { class: "brand", href: "#summary" }, h("b", {}, "Joule"), "map"),
    h(
      "nav",
      { "aria-label": "Sections of the report" },
      sections.map((one) => h("a", { href: `#${one.id}` }, navigationTitles[one.id])),
    ),
    themeButton(),
  ),
);
const pageElement = document.getElementById("page");
pageElement.replaceChildren(...sections);
document.body.append(h("footer", {}, "Created by joulemap. This file loads no external resources."));
for (const one of sections) one.dispatchEvent(new Event("shown"));
document.documentElement.dataset.ready = "true";
