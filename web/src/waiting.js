// SPDX-License-Identifier: Apache-2.0
// Active and idle energy: what devices used while work ran on them, and while they were idle, by cause.
import { totalEnergyOfLevel } from "./data.js";
import { makeStackedBar } from "./bars.js";
import { ledgerTotals, zeroIfRoundingError } from "./ledger.js";

const CPU_DEVICE = "cpu";
const MIN_IDLE_FRACTION = 1e-6; // smaller fractions of the whole are rounding errors

export const IDLE_CAUSE_TEXTS = {
  startup: "start-up",
  data: "waiting for data",
  launch: "waiting for launches",
  synchronization: "after a synchronization",
  compilation: "compilation",
  evaluation: "evaluation",
  checkpoint: "checkpoint",
  communication: "other ranks",
  host: "other host code",
  between: "between steps",
  shutdown: "shutdown",
  unknown: "unknown cause",
};

const IDLE_CAUSE_COLOURS = {
  data: "--part-4",
  launch: "--part-2",
  synchronization: "--part-3",
  communication: "--part-7",
  compilation: "--part-6",
  startup: "--part-idle",
  shutdown: "--part-idle",
};

export const isCpuDevice = (device) => device === CPU_DEVICE || device.endsWith(`/${CPU_DEVICE}`);

// The cause in words: "waiting for data", "idle: start-up". "idle CPUs" for a CPU, whose causes are unknown.
export function idleCauseText(cause, device) {
  if (isCpuDevice(device ?? "")) return "idle CPUs";
  const text = IDLE_CAUSE_TEXTS[cause] ?? cause;
  return text.startsWith("waiting") ? text : `idle: ${text}`;
}

export const idleCauseColour = (cause, device) =>
  isCpuDevice(device) ? "--part-idle" : (IDLE_CAUSE_COLOURS[cause] ?? "--part-none");

// Idle energy of all devices, summed by idleCauseText(): objects with name, energy_j and colour, the largest first.
export function sumIdleByCause(idle) {
  const sums = new Map();
  for (const { cause, device, energy_j } of idle) {
    const text = idleCauseText(cause, device);
    const sum = sums.get(text) ?? { name: text, energy_j: 0, colour: idleCauseColour(cause, device) };
    sum.energy_j += energy_j ?? 0;
    sums.set(text, sum);
  }
  return [...sums.values()].sort((a, b) => b.energy_j - a.energy_j);
}

export function makeActiveAndIdleBar(data) {
  const level = data.level("phase") ?? data.level("layer") ?? data.levels.find((one) => one.attributed_j !== null);
  if (!level || level.attributed_j === null) return null;
  const whole_j = totalEnergyOfLevel(level);
  const { background_j, probe_j } = ledgerTotals(level);
  const causes = sumIdleByCause(level.idle);
  const idle_j = causes.reduce((sum, one) => sum + one.energy_j, 0);
  const parts = [
    { name: "active", energy_j: level.attributed_j - (background_j ?? 0) - (probe_j ?? 0), colour: "--part-1" },
    { name: "active: probing", energy_j: probe_j ?? 0, colour: "--part-5" },
    { name: "active: background", energy_j: background_j ?? 0, colour: "--part-6" },
    ...causes,
    { name: "idle", energy_j: (level.idle_j ?? 0) - idle_j, colour: "--part-idle" },
    {
      name: "not attributed",
      energy_j: zeroIfRoundingError(level.unattributed_j ?? 0, whole_j),
      colour: "--part-none",
      hatched: true,
    },
  ]
    .filter((part) => part.energy_j > MIN_IDLE_FRACTION * whole_j)
    .map((part) => ({ ...part, share: part.energy_j / whole_j }));
  return makeStackedBar("Active and waiting energy", parts);
}
