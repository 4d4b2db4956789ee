// SPDX-License-Identifier: Apache-2.0
// Short names of modules: "transformer.h.0.attn.c_attn" is shown as "h.0.attn.c_attn" where no other name of the page
// ends like that. The cut part stays in the text, so copying, searching and screen readers have the full name.
import { h } from "./dom.js";

const isModule = (name) => /^\w+(\.\w+)+$/.test(name);
const isNumber = (part) => /^\d+$/.test(part);

function suffixesOf(name) {
  const parts = name.split(".");
  return parts.map((_, at) => parts.slice(at).join("."));
}

// A Map from each full name that can be shortened to its shortest suffix that is unambiguous and starts with a word.
export function shortNames(names) {
  const distinct = [...new Set(names)];
  const counts = new Map();
  for (const name of distinct) {
    for (const suffix of isModule(name) ? suffixesOf(name) : [name]) counts.set(suffix, (counts.get(suffix) ?? 0) + 1);
  }
  const shorter = new Map();
  for (const name of distinct.filter(isModule)) {
    const suffix = suffixesOf(name)
      .reverse()
      .find((one) => counts.get(one) === 1 && !isNumber(one.split(".")[0]));
    if (suffix && suffix !== name) shorter.set(name, suffix);
  }
  return shorter;
}

// The short names of all paths of rows.
export const shortNamesOfRows = (rows) => shortNames(rows.flatMap((row) => row.path));

// A name as text whose cut part has no width.
export function nameText(name, shorter) {
  const short = shorter.get(name);
  if (!short) return name;
  const cut = name.slice(0, name.length - short.length);
  return h("span", { class: "shortened" }, h("span", { class: "cut" }, cut), short);
}
