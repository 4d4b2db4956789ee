// SPDX-License-Identifier: Apache-2.0
// Explanations of notes, folded under each of them: the page works without a network, so it links nowhere.
import { h } from "./dom.js";
import { NOTE_TEXTS } from "./note_texts.js";

// An element, or null where nothing is known beyond the note itself.
export function noteHelp(code) {
  const text = Object.hasOwn(NOTE_TEXTS, code) ? NOTE_TEXTS[code] : null;
  return text ? h("details", { class: "note-help" }, h("summary", {}, "What this means"), h("p", {}, text)) : null;
}

// A note with its code, remedy and explanation, as a list item.
export function noteItem(note, count = null) {
  return h(
    "li",
    {},
    h("p", {}, note.message, count ? h("span", { class: "unit" }, ` ${count}`) : null),
    h("p", { class: "unit" }, h("code", {}, note.code), note.remedy ? ` · ${note.remedy}` : ""),
    noteHelp(note.code),
  );
}
