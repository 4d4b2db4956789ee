// SPDX-License-Identifier: Apache-2.0
// Converts rows with paths into the tree of the flame graph. Dotted module names become nested boxes.
import { devicePathKey, findPhase } from "./data.js";
import { IDLE_CAUSE_TEXTS } from "./waiting.js";

function makeNode(name, parent, slot, hue) {
  const depth = parent ? parent.depth + 1 : 0;
  const path = parent ? [...parent.path, name] : [];
  const between = name.startsWith(".") ? "" : " › ";
  const full = parent?.parent ? `${parent.full}${between}${name}` : name;
  const sums = { energy_j: 0, time_s: 0, devices: new Map(), own: new Map() };
  return { name, full, path, parent, slot, hue, depth, shade: 0, ...sums, children: [], byName: new Map() };
}

function findOrAddChild(parent, name, slot, hue) {
  let child = parent.byName.get(name);
  if (!child) {
    child = makeNode(name, parent, slot, hue);
    child.shade = shadeFromNameHash(name, child.depth);
    parent.byName.set(name, child);
    parent.children.push(child);
  }
  return child;
}

// Shade of a box in percent, by a hash of its name: neighbours usually differ, and equal names at equal depth are
// equal.
function shadeFromNameHash(name, depth) {
  let hash = 7;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) % 997;
  return 4 + (hash % 5) * 5 + Math.min(depth, 6) * 2;
}

// Splits a path as tree_path() in src/scopes/path_tree.h does: at the dots of module names. The last element of a path
// is not split at levels where it is an operation, tensor or function.
function splitPath(path, by) {
  const unsplitPartsByLevel = { layer: 0, stack: 0, op: 1, tensor: 1, function: 1 };
  const modules = by in unsplitPartsByLevel ? path.length - unsplitPartsByLevel[by] : 0;
  return path.flatMap((part, index) => {
    if (index >= modules || !/^\w+(\.\w+)+$/.test(part)) return [part];
    return part.split(".").map((name, at) => (at > 0 ? `.${name}` : name));
  });
}

// Builds the tree from rows of the level `by`. isLayer(row): the path of the row ends with a module, not with an
// operation or kernel. `level`: if not null, idle and unattributed energy of the level are added, so that the root is
// the total.
export function buildTree(rows, by, isLayer, level) {
  const root = makeNode("all", null, "root", 0);
  const roots = new Map();
  for (const row of rows) {
    const phase = findPhase(row.path);
    const slot = phase === "other" && row.path.length === 1 ? row.path[0] : phase;
    const hueKey = row.path[0];
    if (!roots.has(hueKey)) roots.set(hueKey, roots.size);
    let at = root;
    for (const part of splitPath(row.path, isLayer(row) ? "layer" : by))
      at = findOrAddChild(at, part, slot, roots.get(hueKey));
    if (by === "stack" && !isLayer(row)) at.label = row.name; // the short name of a kernel
    at.hasRow = true;
    if (row.low_j !== null) at.own.set(row.device, row);
    for (let up = at; up; up = up.parent) {
      up.energy_j += row.energy_j ?? 0;
      up.time_s += row.time_s;
      if (row.energy_j > 0) up.devices.set(row.device, (up.devices.get(row.device) ?? 0) + row.energy_j);
    }
  }
  const addUnattributed = (name, energy_j, time_s = 0) => {
    if (!(energy_j > 0)) return;
    const child = findOrAddChild(root, name, name, 0);
    child.energy_j += energy_j;
    child.time_s += time_s;
    root.energy_j += energy_j;
    root.time_s += time_s;
  };
  if (level) {
    if (level.rest) addUnattributed(`${level.rest.rows} smaller rows`, level.rest.energy_j, level.rest.time_s);
    addUnattributed("idle", level.idle_j);
    // Children of "idle": idle energy by cause.
    for (const { cause, time_s, energy_j } of level.idle ?? []) {
      if (!(energy_j > 0)) continue;
      const child = findOrAddChild(findOrAddChild(root, "idle", "idle", 0), IDLE_CAUSE_TEXTS[cause] ?? cause, "idle", 0);
      child.energy_j += energy_j;
      child.time_s += time_s;
    }
    addUnattributed("not attributed", level.unattributed_j);
  }
  mergeOnlyChildren(root);
  neutralizeMixedPhaseColours(root);
  sortTree(root);
  return root;
}

// Joins a box without a row of its own with its only child, if that is a submodule: ".0" and ".block" become
// ".0.block".
function mergeOnlyChildren(at) {
  at.children = at.children.map((child) => {
    let inner = child;
    while (inner.children.length === 1 && !inner.hasRow && inner.children[0].name.startsWith(".")) {
      const [only] = inner.children;
      only.name = inner.name + only.name;
      only.parent = at;
      inner = only;
    }
    mergeOnlyChildren(inner);
    return inner;
  });
}

// Gives a neutral colour to boxes that contain several phases.
function neutralizeMixedPhaseColours(at) {
  for (const child of at.children) neutralizeMixedPhaseColours(child);
  const slots = new Set(at.children.map((child) => child.slot));
  if (slots.size > 1) at.slot = "root";
}

// Kinds of boxes that come after all others; other boxes are sorted by energy.
const KINDS_SORTED_LAST = ["background", "probe", "idle", "not attributed"];

function sortTree(at) {
  at.children.sort(
    (a, b) =>
      KINDS_SORTED_LAST.indexOf(a.slot) - KINDS_SORTED_LAST.indexOf(b.slot) ||
      b.energy_j - a.energy_j ||
      b.time_s - a.time_s,
  );
  for (const child of at.children) sortTree(child);
}

// Interval of the energy of a box; null if it is unknown. Errors of different devices are independent, because they
// have separate sensors, so they add in quadrature.
export function boxEnergyInterval(at, branches) {
  let [below_j2, above_j2] = [0, 0];
  for (const [device, energy_j] of at.devices) {
    const known = branches.get(devicePathKey(at.path, device)) ?? (at.children.length ? null : at.own.get(device));
    if (!known) return null;
    below_j2 += (energy_j - known.low_j) ** 2;
    above_j2 += (known.high_j - energy_j) ** 2;
  }
  if (!at.devices.size) return null;
  return { low_j: Math.max(at.energy_j - Math.sqrt(below_j2), 0), high_j: at.energy_j + Math.sqrt(above_j2) };
}

export function ancestorsAndSelf(at) {
  return at.parent ? [...ancestorsAndSelf(at.parent), at] : [at];
}

// Boxes whose name contains the query, or whose full path does if the query contains a dot. energy_j: sum over the
// outermost matches, so that no energy counts twice.
export function findMatches(root, query) {
  const text = query.toLowerCase();
  const hits = { matches: new Set(), withAncestors: new Set(), energy_j: 0, count: 0 };
  const walk = (at, inside) => {
    const own =
      at !== root &&
      (at.name.toLowerCase().includes(text) || (text.includes(".") && at.full.toLowerCase().includes(text)));
    if (own) {
      hits.matches.add(at);
      ++hits.count;
    }
    if (own && !inside) hits.energy_j += at.energy_j;
    let any = own || inside;
    for (const child of at.children) any = walk(child, own || inside) || any;
    if (any) hits.withAncestors.add(at);
    return any;
  };
  walk(root, false);
  return hits;
}
