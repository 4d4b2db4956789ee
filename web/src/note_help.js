// SPDX-License-Identifier: Apache-2.0
// Notes on the data, each with a folded explanation. The page works without a network, so it contains the explanations
// instead of links.
import { h } from "./dom.js";
import { NOTE_TEXTS } from "./note_texts.js";

// The explanation of a diagnostic code as an element; null if there is none.
export function noteHelpElement(code) {
  const text = Object.hasOwn(NOTE_TEXTS, code) ? NOTE_TEXTS[code] : null;
  return text ? h("details", { class: "note-help" }, h("summary", {}, "What this means"), h("p", {}, text)) : null;
}

// A note with its code, remedy and explanation, as a list item.
export function noteListItem(note, count = null) {
  return h(
    "li",
    {},
    h("p", {}, note.message, count ? h("span", { class: "unit" }, ` ${count}`) : null),
    h("p", { class: "unit" }, h("code", {}, note.code), note.remedy ? ` · ${note.remedy}` : ""),
    noteHelpElement(note.code),
  );
}
