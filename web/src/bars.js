// SPDX-License-Identifier: Apache-2.0
// A horizontal bar of parts that add up to a whole, with a legend that contains the numbers.
import { h } from "./dom.js";
import { formatJoules, formatPercent } from "./format.js";

// `parts`: objects with name, energy_j, share, colour (a CSS custom property, "--part-1"), and `hatched` for
// unattributed energy.
export function makeStackedBar(caption, parts) {
  const text = parts
    .map((part) => `${part.name} ${formatJoules(part.energy_j)}, ${formatPercent(part.share)}`)
    .join("; ");
  const colour = (part) => `var(${part.colour})`;
  return h(
    "figure",
    { class: "went" },
    h("figcaption", {}, caption),
    h(
      "div",
      { class: "bar", role: "img", "aria-label": `${caption}: ${text}` },
      parts.map((part) =>
        h("span", {
          title: `${part.name}: ${formatJoules(part.energy_j)}, ${formatPercent(part.share)}`,
          class: part.hatched ? "hatched" : null,
          style: { flexGrow: String(part.energy_j), backgroundColor: colour(part) },
        }),
      ),
    ),
    h(
      "ul",
      { class: "legend" },
      parts.map((part) =>
        h(
          "li",
          {},
          h("span", { class: `swatch ${part.hatched ? "hatched" : ""}`, style: { backgroundColor: colour(part) } }),
          h("span", { class: "legend-name" }, part.name),
          h("b", {}, formatJoules(part.energy_j)),
          h("span", { class: "unit" }, formatPercent(part.share)),
        ),
      ),
    ),
  );
}
