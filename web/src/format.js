// SPDX-License-Identifier: Apache-2.0
// Formats numbers with three or four significant digits and an SI prefix.

const SI_PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
];

export const UNKNOWN_TEXT = "–";
const THIN_SPACE = "\u202f";

export function formatDigits(value, count = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const decimals = Math.max(0, Math.min(12, count - 1 - Math.floor(Math.log10(size))));
  const text = value.toFixed(decimals);
  return size >= 10000 ? groupThousands(text) : text;
}

function groupThousands(text) {
  const [whole, part] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, THIN_SPACE);
  return part ? `${spaced}.${part}` : spaced;
}

export function formatInteger(value) {
  return value === null || value === undefined ? UNKNOWN_TEXT : groupThousands(String(Math.round(value)));
}

// Returns [number, unit], so that the unit can be styled differently; [UNKNOWN_TEXT, ""] if the value is unknown.
export function toNumberAndUnit(value, unit, count = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return [UNKNOWN_TEXT, ""];
  if (value === 0) return ["0", unit];
  const size = Math.abs(value);
  // The prefix is chosen after rounding: 999.96 becomes 1.00 k, not 1000.
  const rounded = Number(size.toPrecision(count));
  const [factor, prefix] = SI_PREFIXES.find(([least]) => rounded >= least) ?? SI_PREFIXES[SI_PREFIXES.length - 1];
  return [formatDigits(Number((value / factor).toPrecision(count)), count), prefix + unit];
}

// Rates below 1/s have no prefix: "m/s" reads as metres per second.
export function toRateAndUnit(per_s) {
  return Math.abs(per_s) >= 1 ? toNumberAndUnit(per_s, "/s") : [formatDigits(Number(per_s.toPrecision(3)), 3), "/s"];
}

export function formatWithUnit(value, unit, count = 3) {
  const [number, name] = toNumberAndUnit(value, unit, count);
  return name ? `${number}${THIN_SPACE}${name}` : number;
}

const TIME_UNITS = [
  [7200, 3600, "h"],
  [600, 60, "min"],
  [1, 1, "s"],
  [1e-3, 1e-3, "ms"],
];

// Labels of axis ticks: one SI prefix for all of them, and enough decimals to distinguish them.
export function formatTickLabels(values, unit) {
  const most = Math.max(...values.map(Math.abs));
  const scales =
    unit === "s" ? TIME_UNITS : unit ? SI_PREFIXES.map(([factor, prefix]) => [factor, factor, prefix + unit]) : [];
  const [, factor, name] = scales.find(([least]) => most >= least) ?? [0, 1, unit];
  const exact = (decimals) => values.every((value) => isWholeNumber((value / factor) * 10 ** decimals));
  const decimals = [0, 1, 2, 3, 4, 5].find(exact) ?? 6;
  const text = (value) => `${(value / factor).toFixed(decimals)}${name ? THIN_SPACE + name : ""}`;
  return values.map((value) => (value === 0 && unit ? "0" : text(value)));
}

const isWholeNumber = (value) => Math.abs(value - Math.round(value)) < 1e-6 * Math.max(1, Math.abs(value));

export const formatJoules = (value, count) => formatWithUnit(value, "J", count);
export const formatWatts = (value, count) => formatWithUnit(value, "W", count);

export function formatSeconds(value, count = 3) {
  if (value === null || value === undefined) return UNKNOWN_TEXT;
  if (value >= 7200) return `${formatDigits(value / 3600, count)}${THIN_SPACE}h`;
  if (value >= 600) return `${formatDigits(value / 60, count)}${THIN_SPACE}min`;
  return value >= 1 ? `${formatDigits(value, count)}${THIN_SPACE}s` : formatWithUnit(value, "s", count);
}

export function formatPercent(share) {
  if (share === null || share === undefined) return UNKNOWN_TEXT;
  const value = 100 * share;
  if (value !== 0 && Math.abs(value) < 0.05) return `<0.1${THIN_SPACE}%`;
  return `${value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1)}${THIN_SPACE}%`;
}

// Half width of the interval as a fraction of the energy; null if unknown.
export function relativeHalfWidth(row) {
  if (row.low_j === null || row.high_j === null || !(row.energy_j > 0)) return null;
  return (row.high_j - row.low_j) / 2 / row.energy_j;
}

export function formatHalfWidth(row) {
  const share = relativeHalfWidth(row);
  if (share === null) return "";
  const value = 100 * share;
  return `±${THIN_SPACE}${value < 0.95 ? value.toFixed(1) : value.toFixed(0)}${THIN_SPACE}%`;
}

export function formatInterval(row) {
  if (row.low_j === null || row.high_j === null) return "interval unknown";
  return `${formatJoules(row.low_j)} to ${formatJoules(row.high_j)}`;
}

export function formatCount(count, one, many = `${one}s`) {
  return `${formatInteger(count)} ${count === 1 ? one : many}`;
}
