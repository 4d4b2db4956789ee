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
import { cost, notes } from "./cost.js";
import { readData } from "./data.js";
import { diffSections, diffTitle } from "./diff.js";
import { h } from "./dom.js";
import { flame } from "./flame.js";
import { loss } from "./loss.js";
import { steps } from "./steps.js";
import { summary, title } from "./summary.js";
import { tables } from "./tables.js";
import { themeButton } from "./theme.js";
import { timeline } from "./timeline.js";
import { violins } from "./violin.js";

const text = document.getElementById("joulemap-data").textContent;

function ofRun() {
  const data = readData(text);
  const parts = [summary, flame, steps, timeline, tables, violins, loss, cost, notes];
  return [title(data), parts.map((part) => part(data)).filter(Boolean)];
}

function ofDifference(data) {
  return [diffTitle(data), diffSections(data)];
}

const schema = JSON.parse(text).schema;
const [name, sections] = schema === "joulemap.diff/1" ? ofDifference(JSON.parse(text)) : ofRun();
document.title = `${name} · Joulemap`;
const short = {
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
      sections.map((one) => h("a", { href: `#${one.id}` }, short[one.id])),
    ),
    themeButton(),
  ),
);
const page = document.getElementById("page");
page.replaceChildren(...sections);
document.body.append(h("footer", {}, "Created by joulemap. This file loads no external resources."));
for (const one of sections) one.dispatchEvent(new Event("shown"));
document.documentElement.dataset.ready = "true";
