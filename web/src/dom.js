// SPDX-License-Identifier: Apache-2.0
// Creates DOM elements. Text is always inserted as text, so names in a recording never become markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function setElementContent(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export const h = (tag, attributes, ...children) => setElementContent(document.createElement(tag), attributes, children);
export const svgElement = (tag, attributes, ...children) =>
  setElementContent(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);

// A number and its unit, which is styled less prominently.
export function quantityElement([number, unit], options = {}) {
  return h(
    "span",
    { class: `quantity ${options.class ?? ""}` },
    number,
    unit ? h("span", { class: "unit" }, ` ${unit}`) : null,
  );
}

// A section of the page: a landmark with a heading, a lead sentence and content.
export function pageSection(id, title, lead, ...content) {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title`, tabindex: "-1" },
    h(
      "header",
      { class: "section-head" },
      h(id === "summary" ? "h1" : "h2", { id: `${id}-title` }, title),
      lead ? h("p", { class: "lead" }, lead) : null,
    ),
    ...content,
  );
}

// A folded table with the numbers of a chart, for screen readers and for readers who need the numbers.
export function collapsibleTable(caption, heads, rows) {
  const cell = (tag, content, index) =>
    h(tag, { class: index > 0 ? "number" : null, scope: tag === "th" ? "col" : null }, content);
  return h(
    "details",
    { class: "as-table" },
    h("summary", {}, "As a table"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `${caption}, as a table` },
      h(
        "table",
        {},
        h("caption", { class: "hidden" }, caption),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((head, index) => cell("th", head, index)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              row.map((content, index) => cell("td", content, index)),
            ),
          ),
        ),
      ),
    ),
  );
}

// Buttons of which one is pressed. `options`: [value, text]. Calls choose(value) for a click, not for the initial
// value.
export function choiceButtons(label, options, choose, chosen = options[0]?.[0]) {
  const group = h("div", { class: "choice", role: "group", "aria-label": label });
  const select = (value) => {
    for (const button of group.children) button.setAttribute("aria-pressed", String(button.value === value));
    choose(value);
  };
  for (const [value, text] of options) {
    group.append(
      h(
        "button",
        { type: "button", value, "aria-pressed": String(value === chosen), onclick: () => select(value) },
        text,
      ),
    );
  }
  return group;
}

export const readCssProperty = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
