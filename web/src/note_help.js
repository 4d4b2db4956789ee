// SPDX-License-Identifier: Apache-2.0
// Explanations of notes, folded under each of them: the page works without a network, so it links nowhere.
import { h } from "./dom.js";

const LIGHT = "Joulemap traces some steps and assumes that the steps after them repeat them.";
const HELP = {
  kernels_by_time: `Power samples are slower than kernels, so kernels that always run together cannot be separated. Their
    energy is split by time: sums over a phase or block are reliable, single layers in it less. Probing replays each
    module alone (record --probe); a longer run or --period 100 adds samples.`,
  kernels_by_library: `Powers of kernel classes come from earlier recordings on this GPU model. The total is measured in
    this run; the split among kernels relies on the library.`,
  kernels_sampled: `${LIGHT} The total is measured in all steps. Layers of untraced steps are extrapolated.`,
  counts_unknown: "Energy and time of these rows are unaffected; only their call counts are missing.",
  shapes_unknown: "Energy is unaffected; operations of one name and different shapes share a row.",
  kernels_grouped: "Energy is unaffected; kernels with little time share one row.",
  kernels_lost: `Kernel records are missing for some time. That energy is unattributed, or extrapolated from the steps
    around it.`,
  kernels_dropped: `The driver dropped kernel records because its buffers were full. Their energy is unattributed.`,
  kernels_unplaced: "These kernels have energy, but belong to no layer.",
  slowed_kernels: "Throttled clocks make kernels longer and lower their power. The attribution corrects for it.",
  gpu_not_measured: `This GPU ran kernels, but no energy of it was recorded: its rows have times and no energies. Run
    joulemap doctor on that machine.`,
  power_limited: `A GPU at its power limit lowers its clocks: the same work takes longer at less power. Compare only runs
    with the same limit (nvidia-smi -q -d POWER).`,
  clocks_slowed: "Heat or hardware protection lowered the clocks. Energy and time differ from those of a cool GPU.",
  not_probed: `Modules could not be replayed, so kernels are separated by regression only. Probing needs PyTorch modules
    and a program that ends normally.`,
  not_dithered: "No pauses were inserted. Kernels that always follow each other are harder to separate without them.",
  cut_off: "All values cover the recorded part of the run only.",
  recording_not_ended: "A process was killed or lost its disk. Its data are valid up to that moment.",
  recording_part_unreadable: "Data of one process are missing from this page. Make the file readable and report again.",
  chunks_skipped: "A newer joulemap wrote this file. Report it with that version.",
  no_recorder: "Times are known, energies are not. Also pass the file that joulemap record wrote.",
  no_samples: "Times are known, energies are not. Run joulemap doctor to see which sensors can be read.",
  nothing_captured: `The recorder saw no layers, steps or kernels. It captures PyTorch, TensorFlow, JAX, ONNX Runtime, CUDA
    and regions that a program marks.`,
  estimates_not_added: "Measured and estimated energies are never added: the estimate is shown beside the total.",
  counter_reset: "A driver reload or sleep resets counters. The energy of that moment is missing from the total.",
  counter_frozen: "Firmware or a virtual machine freezes this counter, or it updates less often than the run lasted.",
  wrap_missed: "The counter is too narrow for such a long pause between readings. Energy of that time is missing.",
  readings_missing: `Energy of that time is interpolated, and the interval is wider. The recorder got no CPU time, or the
    sensor failed.`,
  readings_paused: "The total is exact; when in the pause the energy was used is unknown.",
  sensors_disagree: "Two sensors measure the same domain. The first one counts; the second is not added.",
  waits_for_host: `The GPU waits for the host, whose speed varies from run to run. Several recordings of each side make the
    comparison reliable.`,
  no_steady_state: "Start-up is part of the comparison, which hides small changes. Record more steps.",
  not_settled: "Energy per step still drifts, so means depend on the length of the run. Record for longer.",
  scatter_unknown: "With few steps, the noise of a comparison comes from the sensors only and may be too small.",
  gate_below_noise: "The limit is smaller than what this comparison can detect: it may pass or fail by chance.",
  domains_differ: "Only domains that all recordings measured are compared.",
  profiler_in_process: "Two profilers compete for GPU records: records are missing and the program is slower.",
};

// An element, or null where nothing is known beyond the note itself.
export function noteHelp(code) {
  const text = Object.hasOwn(HELP, code) ? HELP[code].replace(/\s+/g, " ") : null;
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
