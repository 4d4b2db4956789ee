// SPDX-License-Identifier: Apache-2.0
//
// Short names of modules: "transformer.h.0.attn.c_attn" is shown as
// "h.0.attn.c_attn" if no other name ends like that. The hidden part stays in the document, so that copying, searching
// and screen readers use the full name.
import { h } from "./dom.js";

const isDottedName = (name) => /^\w+(\.\w+)+$/.test(name);
const hasOnlyDigits = (part) => /^\d+$/.test(part);

function nameSuffixes(name) {
  const parts = name.split(".");
  return parts.map((_, at) => parts.slice(at).join("."));
}

// Map from each name that can be shortened to its shortest suffix that no other name has and that begins with no
// number.
export function shortNames(names) {
  const distinct = [...new Set(names)];
  const counts = new Map();
  for (const name of distinct) {
    for (const suffix of isDottedName(name) ? nameSuffixes(name) : [name])
      counts.set(suffix, (counts.get(suffix) ?? 0) + 1);
  }
  const shorter = new Map();
  for (const name of distinct.filter(isDottedName)) {
    const suffix = nameSuffixes(name)
      .reverse()
      .find((one) => counts.get(one) === 1 && !hasOnlyDigits(one.split(".")[0]));
    if (suffix && suffix !== name) shorter.set(name, suffix);
  }
  return shorter;
}

// shortNames() of the elements of all paths.
export const shortNamesOfRows = (rows) => shortNames(rows.flatMap((row) => row.path));

// The short form of a name, with the hidden part in an element without width; the name itself if it has no short form.
export function shortNameElement(name, shorter) {
  const short = shorter.get(name);
  if (!short) return name;
  const cut = name.slice(0, name.length - short.length);
  return h("span", { class: "shortened" }, h("span", { class: "cut" }, cut), short);
}
