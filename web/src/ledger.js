// SPDX-License-Identifier: Apache-2.0
//
// Energy of a level by kind: attributed, probing, background, idle and
// unattributed. A line below every view shows them.
import { isBackgroundRow, isProbeRow, findPhase, shareOfWhole, totalEnergyOfLevel } from "./data.js";
import { h } from "./dom.js";
import { formatJoules, formatPercent, formatCount } from "./format.js";

export const sumEnergies = (rows) => rows.reduce((sum, row) => sum + (row.energy_j ?? 0), 0);

// Returns 0 for an energy that is only a rounding error of the whole.
export const zeroIfRoundingError = (energy_j, whole_j) => (Math.abs(energy_j) < 1e-9 * whole_j ? 0 : energy_j);

export function ledgerTotals(level) {
  const background = level.rows.filter(isBackgroundRow);
  const probe = level.rows.filter(isProbeRow);
  return {
    whole_j: totalEnergyOfLevel(level),
    background_j: background.some((row) => row.energy_j !== null) ? sumEnergies(background) : null,
    probe_j: probe.some((row) => row.energy_j !== null) ? sumEnergies(probe) : null,
    idle_j: level.idle_j,
    unattributed_j: level.unattributed_j,
  };
}

// A list of items: "attributed 31.5 kJ 93 %", "including probing 25.3 kJ 74 %", "idle 2.1 kJ 6.2 %", "not attributed 0
// 0 %", "2 notes on the data".
export function ledgerSummaryList(data, level) {
  const items = [];
  const item = (label, energy_j, whole_j) =>
    items.push(
      h(
        "li",
        {},
        `${label} `,
        h("b", {}, formatJoules(energy_j)),
        whole_j > 0 ? h("span", { class: "unit" }, ` ${formatPercent(energy_j / whole_j)}`) : null,
      ),
    );
  if (level && level.attributed_j !== null) {
    const parts = ledgerTotals(level);
    item("attributed", level.attributed_j, parts.whole_j);
    if (parts.probe_j !== null) item("including probing", parts.probe_j, parts.whole_j);
    if (parts.background_j !== null) item("including background", parts.background_j, parts.whole_j);
    item("idle", parts.idle_j ?? 0, parts.whole_j);
    item("not attributed", zeroIfRoundingError(parts.unattributed_j ?? 0, parts.whole_j), parts.whole_j);
  }
  items.push(
    h(
      "li",
      {},
      h(
        "a",
        { href: "#notes" },
        data.notes.length ? formatCount(data.notes.length, "note") + " on the data" : "no faults in the data",
      ),
    ),
  );
  return h("ul", { class: "ledger-line", "aria-label": "Attributed, idle and unattributed energy" }, items);
}

// Returns the energy of each phase, the idle and the unattributed energy as parts for makeStackedBar(). Sums the rows of
// the first report level that exists: phases, layers, regions, kernels. Returns null if that level has no energies.
export function energyByPhase(data) {
  const level = data.level("phase") ?? data.level("layer") ?? data.level("region") ?? data.level("kernel");
  if (!level || level.attributed_j === null) return null;
  const totals = new Map();
  const add = (name, energy_j) => totals.set(name, (totals.get(name) ?? 0) + energy_j);
  const hasPhases = level.rows.some((row) => !["other", "probe", "background"].includes(findPhase(row.path)));
  for (const row of level.rows) {
    const phase = findPhase(row.path);
    // A region of the measured program is a part of its own.
    const usesOwnName = phase === "other" && (!hasPhases || row.path.length === 1);
    add(usesOwnName ? row.path[row.path.length - 1] : phase, row.energy_j ?? 0);
  }
  let parts = [...totals].map(([name, energy_j]) => ({ name, energy_j }));
  const last = (part) => ["probe", "background"].indexOf(part.name);
  parts = mergeSmallParts(
    parts.sort((a, b) => last(a) - last(b) || b.energy_j - a.energy_j),
    8,
  );
  if (level.rest) parts.push({ name: "smaller rows", energy_j: level.rest.energy_j ?? 0 });
  parts.push({ name: "idle", energy_j: level.idle_j ?? 0 });
  parts.push({ name: "not attributed", energy_j: Math.max(level.unattributed_j ?? 0, 0) });
  const whole_j = totalEnergyOfLevel(level);
  return parts
    .filter((part) => part.energy_j > 0)
    .map((part) => ({ ...part, share: shareOfWhole(part.energy_j, whole_j) }));
}

function mergeSmallParts(parts, most) {
  if (parts.length <= most) return parts;
  const rest = parts.slice(most - 1);
  return [...parts.slice(0, most - 1), { name: `${rest.length} more`, energy_j: sumEnergies(rest) }];
}

const COLOUR_SLOTS = {
  root: "root",
  forward: 1,
  backward: 2,
  optimizer: 3,
  dataloader: 4,
  other: 7,
  probe: 5,
  background: 6,
  idle: "idle",
  "not attributed": "none",
};
// Name of the CSS custom property for a phase or kind of energy, the same in every view. Other names get one by
// `index`.
export function colourProperty(name, index = 0) {
  const slot = / others$/.test(name) ? COLOUR_SLOTS.other : COLOUR_SLOTS[name];
  return slot !== undefined ? `--part-${slot}` : `--part-${(index % 4) + 1}`;
}
