// SPDX-License-Identifier: Apache-2.0
// Rows with paths, as a tree: dotted names of modules become levels of their own, so that blocks can be seen as one.
import { phaseOf } from "./data.js";
import { intervalText } from "./format.js";

function node(name, full, parent, slot, hue) {
  const depth = parent ? parent.depth + 1 : 0;
  return {
    name,
    full,
    parent,
    slot,
    hue,
    depth,
    shade: 0,
    energy_j: 0,
    time_s: 0,
    children: [],
    byName: new Map(),
    interval: null,
  };
}

function childOf(parent, name, slot, hue) {
  let child = parent.byName.get(name);
  if (!child) {
    const full = parent.parent ? `${parent.full} › ${name}` : name;
    child = node(name, full, parent, slot, hue);
    child.shade = shadeOf(name, child.depth);
    parent.byName.set(name, child);
    parent.children.push(child);
  }
  return child;
}

// Neighbours differ a little, and the same name is the same shade everywhere.
function shadeOf(name, depth) {
  let hash = 7;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) % 997;
  return 4 + (hash % 5) * 5 + Math.min(depth, 6) * 2;
}

// Modules are the part that has dots; what stands after a module is an operation, whose dots mean nothing.
function partsOf(path) {
  const at = path.findIndex(
    (part, index) => index > 0 && part.includes(".") && !part.includes("::") && !part.includes(" "),
  );
  return path.flatMap((part, index) => (index === at ? part.split(".") : [part]));
}

// `level`: adds what is nobody's, so that the root is all that was measured.
export function buildTree(rows, level) {
  const root = node("all", "all", null, "root", 0);
  const roots = new Map();
  for (const row of rows) {
    const slot = phaseOf(row.path);
    const hueKey = row.path[0];
    if (!roots.has(hueKey)) roots.set(hueKey, roots.size);
    let at = root;
    for (const part of partsOf(row.path)) at = childOf(at, part, slot, roots.get(hueKey));
    at.interval = at.interval ? null : intervalText(row);
    for (let up = at; up; up = up.parent) {
      up.energy_j += row.energy_j ?? 0;
      up.time_s += row.time_s;
    }
  }
  const nobody = (name, energy_j, time_s = 0) => {
    if (!(energy_j > 0)) return;
    const child = childOf(root, name, name, 0);
    child.energy_j += energy_j;
    child.time_s += time_s;
    root.energy_j += energy_j;
    root.time_s += time_s;
  };
  if (level) {
    if (level.rest) nobody(`${level.rest.rows} smaller rows`, level.rest.energy_j, level.rest.time_s);
    nobody("idle", level.idle_j);
    nobody("not attributed", level.unattributed_j);
  }
  neutralUpperLevels(root);
  sortTree(root);
  return root;
}

// A box that holds several phases has none of their colours.
function neutralUpperLevels(at) {
  for (const child of at.children) neutralUpperLevels(child);
  const slots = new Set(at.children.map((child) => child.slot));
  if (slots.size > 1) at.slot = "root";
}

// What is nobody's stands last.
const LAST = ["background", "probe", "idle", "not attributed"];

function sortTree(at) {
  at.children.sort(
    (a, b) => LAST.indexOf(a.slot) - LAST.indexOf(b.slot) || b.energy_j - a.energy_j || b.time_s - a.time_s,
  );
  for (const child of at.children) sortTree(child);
}

export function pathOf(at) {
  return at.parent ? [...pathOf(at.parent), at] : [at];
}

const dotted = (at) => at.full.split(" › ").join(".").toLowerCase();

// Boxes whose name, or path, holds the text; each joule counts once, in the outermost of them.
export function matching(root, query) {
  const text = query.toLowerCase();
  const hits = { own: new Set(), all: new Set(), energy_j: 0, count: 0 };
  const walk = (at, inside) => {
    const own = at !== root && (at.name.toLowerCase().includes(text) || dotted(at).includes(text));
    if (own) {
      hits.own.add(at);
      ++hits.count;
    }
    if (own && !inside) hits.energy_j += at.energy_j;
    let any = own || inside;
    for (const child of at.children) any = walk(child, own || inside) || any;
    if (any) hits.all.add(at);
    return any;
  };
  walk(root, false);
  return hits;
}
