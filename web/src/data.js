// SPDX-License-Identifier: Apache-2.0
//
// Decodes the JSON of the page, which src/page/page_data.cc writes. There, names
// are indices into data.names, and rows are arrays; parsePageData() turns rows into objects with names.

export function parsePageData(text) {
  const data = JSON.parse(text);
  const name = (number) => data.names[number];
  for (const level of data.levels) {
    level.rows = level.rows.map((row) => ({
      path: row[0].map(name),
      name: name(row[1]),
      device: name(row[2]),
      count: row[3],
      time_s: row[4],
      energy_j: row[5],
      low_j: row[6],
      high_j: row[7],
      dynamic_j: row[8],
      power_w: row[9],
      basis: name(row[10]),
      cause: name(row[11]) || null,
      cause_basis: name(row[12]) || null,
      waiting_j: row[13],
      waiting_low_j: row[14],
      waiting_high_j: row[15],
    }));
    for (const row of level.rows) row.share = shareOfWhole(row.energy_j, totalEnergyOfLevel(level));
    level.idle = level.idle.map((entry) => readIdleCause(entry, name));
  }
  for (const level of data.levels) {
    level.branches = new Map(
      level.branches.map(([path, device, low_j, high_j]) => [
        devicePathKey(path.map(name), name(device)),
        { low_j, high_j },
      ]),
    );
  }
  data.level = (by) => data.levels.find((level) => level.by === by);
  for (const key of ["steps", "epochs"]) data[key] = data[key].map(readStepOrEpoch);
  for (const key of ["phases", "regions", "probing", "dithering"]) {
    data[key] = data[key].map(([number, begin_s, end_s, count]) => ({ name: name(number), begin_s, end_s, count }));
  }
  for (const detail of data.step_details) readStepDetail(detail, name);
  for (const spread of data.spreads) spread.path = spread.path.map(name);
  data.notes = collectNotes(data);
  return data;
}

export const devicePathKey = (path, device) => [device, ...path].join("\u0000");

function readStepOrEpoch([number, count, begin_s, end_s, time_s, energy_j, loss, joules_per_loss]) {
  return { number, count, begin_s, end_s, time_s, energy_j, loss, joules_per_loss };
}

function readStepDetail(detail, name) {
  detail.layers = detail.layers.map(([path, device, time_s, energy_j]) => ({
    path: path.map(name),
    device: name(device),
    time_s,
    energy_j,
  }));
  detail.waits = detail.waits.map((entry) => readIdleCause(entry, name));
}

// Idle time and energy of a device with one cause, as an object.
function readIdleCause([cause, device, time_s, energy_j], name) {
  return { cause, device: name(device), time_s, energy_j };
}

// Sum of attributed, idle and unattributed energy of a level in J; null if energies are unknown.
export function totalEnergyOfLevel(level) {
  if (level.attributed_j === null) return null;
  return level.attributed_j + (level.idle_j ?? 0) + (level.unattributed_j ?? 0);
}

export function shareOfWhole(part, whole) {
  return part === null || part === undefined || !(whole > 0) ? null : part / whole;
}

// Diagnostics of the run and of its levels, without duplicates.
function collectNotes(data) {
  const seen = new Map();
  for (const note of [...data.diagnostics, ...data.levels.flatMap((level) => level.diagnostics)]) {
    seen.set(`${note.code} ${note.message}`, note);
  }
  return [...seen.values()];
}

export const isBackgroundRow = (row) => row.path.length === 1 && row.path[0] === "background";
export const isProbeRow = (row) => row.path.length === 1 && row.path[0] === "probe";

// Phase of a row: "backward" for the path ["train", "backward", "layer4.0.conv2"]; "probe", "background", or "other" if
// the path contains no phase.
const PHASE_NAMES = ["forward", "backward", "optimizer", "dataloader"];
export function findPhase(path) {
  if (path[0] === "probe" || path[0] === "background") return path[0];
  return path.find((part) => PHASE_NAMES.includes(part)) ?? "other";
}
