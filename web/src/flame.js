// SPDX-License-Identifier: Apache-2.0
// The flame graph: energy by mode, phase, module, operation. The children of a box lie below it, within its width.
import { isProbeRow, findPhase, shareOfWhole } from "./data.js";
import { collapsibleTable, choiceButtons, h, pageSection } from "./dom.js";
import { formatJoules, formatPercent, formatSeconds, formatWatts } from "./format.js";
import { buildTree, boxEnergyInterval, findMatches, ancestorsAndSelf } from "./flame_tree.js";
import { colourProperty, ledgerSummaryList } from "./ledger.js";

const ROW_HEIGHT_PX = 22;
const MIN_BOX_WIDTH = 0.0008; // fraction of the width of the graph; narrower boxes are not drawn

const BOX_MEASURES = {
  joules: { text: "Joules", size: (node) => node.energy_j, label: (node) => formatJoules(node.energy_j) },
  share: {
    text: "Share",
    size: (node) => node.energy_j,
    label: (node, root) => formatPercent(shareOfWhole(node.energy_j, root.energy_j)),
  },
  seconds: { text: "Seconds", size: (node) => node.time_s, label: (node) => formatSeconds(node.time_s) },
  watts: {
    text: "Watts",
    size: (node) => node.energy_j,
    label: (node) => formatWatts(node.time_s > 0 ? node.energy_j / node.time_s : null),
  },
};

// Levels that the reader can choose: kernels, and operations or layers. Layers if the level of operations is no deeper
// than that of layers, because the recording then contains no operations.
function flameLevels(data) {
  const depth = (level) => Math.max(...level.rows.map((row) => row.path.length));
  const [kernels, ops, layers] = ["stack", "op", "layer"].map((by) => data.level(by));
  const finestLevel = ops && layers && depth(ops) <= depth(layers) ? layers : (ops ?? layers);
  const list = [kernels, finestLevel].filter(Boolean);
  return list.length ? list : [data.level("region"), data.level("kernel")].filter(Boolean).slice(0, 1);
}

const LEVEL_TEXTS = { stack: "Kernels", op: "Operations", layer: "Layers" };

export function flameSection(data) {
  const levels = flameLevels(data);
  let [level] = levels;
  if (!level) return null;
  const layers = new Set((data.level("layer")?.rows ?? []).map((row) => row.path.join("\u0000")));
  const isLayer = (row) => layers.has(row.path.join("\u0000"));
  const hasEnergy = level.attributed_j !== null;
  const hasProbe = level.rows.some(isProbeRow);
  const state = {
    measure: hasEnergy ? "joules" : "seconds",
    phase: "all",
    device: "all",
    probing: false,
    query: "",
    root: null,
    tree: null,
    nodes: [],
    width: 1000,
    branches: null,
    // Whether the node contains all of its branch: with a filter by phase, the interval of a branch above phases is
    // unknown.
    containsWholeBranch: (node) => state.phase === "all" || node.path.includes(state.phase),
  };
  const box = h("div", { class: "flame", role: "tree", "aria-label": "Energy by module" });
  const breadcrumbs = h("p", { class: "crumbs" });
  const found = h("output", { class: "found", for: "flame-search" });
  const rebuildTree = () => {
    const rows = level.rows.filter(
      (row) =>
        (state.probing || !isProbeRow(row)) &&
        (state.phase === "all" || findPhase(row.path) === state.phase) &&
        (state.device === "all" || row.device === state.device),
    );
    state.branches = level.branches;
    state.tree = buildTree(rows, level.by, isLayer, state.phase === "all" && state.device === "all" ? level : null);
    if (hasProbe && !state.probing) state.tree.name = state.tree.full = "all without probing";
    state.root = state.tree;
    draw();
  };
  const draw = () => drawFlame(state, { box, breadcrumbs, found, zoom });
  const zoom = (node) => {
    state.root = node;
    draw();
    box.querySelector(".frame.focus, .frame")?.focus({ preventScroll: true });
  };
  box.addEventListener("keydown", (event) => handleFlameKey(event, state, zoom));
  const phases = [...new Set(level.rows.map((row) => findPhase(row.path)))];
  const phaseOptions = [
    ["all", "All"],
    ...["forward", "backward", "optimizer", "dataloader", "other"]
      .filter((name) => phases.includes(name))
      .map((name) => [name, name[0].toUpperCase() + name.slice(1)]),
  ];
  const devices = [...new Set(level.rows.map((row) => row.device))];
  const search = h("input", {
    id: "flame-search",
    type: "search",
    placeholder: levels.length > 1 ? "Search layers, kernels" : "Search layers",
    "aria-label": "Search in the flame graph",
    oninput: (event) => {
      state.query = event.target.value;
      draw();
    },
  });
  const measures = Object.entries(BOX_MEASURES)
    .filter(([name]) => hasEnergy || name === "seconds")
    .map(([name, measure]) => [name, measure.text]);
  const shown = pageSection(
    "flame",
    "Flame graph",
    "The width of a box is its energy. Click or press Enter to zoom in, Escape to reset.",
    h(
      "div",
      { class: "toolbar" },
      choiceButtons("Value of boxes", measures, (value) => {
        state.measure = value;
        draw();
      }),
      levels.length > 1
        ? choiceButtons(
            "Depth",
            levels.map((level) => [level.by, LEVEL_TEXTS[level.by]]),
            (by) => {
              level = data.level(by);
              rebuildTree();
            },
          )
        : null,
      phaseOptions.length > 2
        ? choiceButtons("Phase", phaseOptions, (value) => {
            state.phase = value;
            rebuildTree();
          })
        : null,
      devices.length > 1
        ? choiceButtons("Device", [["all", "All devices"], ...devices.map((name) => [name, name])], (value) => {
            state.device = value;
            rebuildTree();
          })
        : null,
      hasProbe
        ? h(
            "label",
            { class: "tick" },
            h("input", {
              type: "checkbox",
              onchange: (event) => {
                state.probing = event.target.checked;
                rebuildTree();
              },
            }),
            "with probing",
          )
        : null,
      h("div", { class: "search" }, search, found),
    ),
    breadcrumbs,
    box,
    collapsibleTable("The largest parts", ["Path", "Energy", "Share", "Time"], formatLargestRows(level)),
    ledgerSummaryList(data, level),
  );
  rebuildTree();
  shown.addEventListener("shown", () => {
    new ResizeObserver(() => {
      if (Math.abs(state.width - box.clientWidth) < 2) return;
      state.width = box.clientWidth;
      draw();
    }).observe(box);
  });
  return shown;
}

function formatLargestRows(level) {
  return level.rows
    .slice(0, 30)
    .map((row) => [
      row.path.join(" › "),
      formatJoules(row.energy_j),
      formatPercent(row.share),
      formatSeconds(row.time_s),
    ]);
}

function drawFlame(state, { box, breadcrumbs, found, zoom }) {
  const measure = BOX_MEASURES[state.measure];
  const hits = state.query ? findMatches(state.tree, state.query) : null;
  const frames = [];
  let deepest = 0;
  state.nodes = [];
  const ancestors = ancestorsAndSelf(state.root);
  const place = (node, left, width, depth) => {
    deepest = Math.max(deepest, depth);
    frames.push(drawBox(node, left, width, depth, { state, measure, hits, zoom }));
    state.nodes.push(node);
    let at = left;
    const size = measure.size(node);
    for (const child of node.children) {
      const part = size > 0 ? (measure.size(child) / size) * width : 0;
      if (part >= MIN_BOX_WIDTH) place(child, at, part, depth + 1);
      at += part;
    }
  };
  ancestors.slice(0, -1).forEach((node, depth) => {
    frames.push(drawBox(node, 0, 1, depth, { state, measure, hits, zoom }));
    state.nodes.push(node);
  });
  place(state.root, 0, 1, ancestors.length - 1);
  box.replaceChildren(...frames);
  box.style.height = `${(deepest + 1) * ROW_HEIGHT_PX}px`;
  breadcrumbs.replaceChildren(
    ...ancestors.map((node) => h("button", { type: "button", onclick: () => zoom(node) }, node.label ?? node.name)),
  );
  breadcrumbs.hidden = ancestors.length < 2;
  const shareText = (energy_j) => formatPercent(shareOfWhole(energy_j, state.tree.energy_j));
  found.textContent = hits
    ? `${formatJoules(hits.energy_j)}, ${shareText(hits.energy_j)}, ${hits.count} found`
    : "";
}

// Text for tooltip and screen readers: the chosen value of the box first, then the other values and the interval.
function boxDescription(node, state, measure) {
  const parts = [
    measure.label(node, state.tree),
    ...Object.values(BOX_MEASURES)
      .filter((candidate) => candidate !== measure && (candidate !== BOX_MEASURES.watts || node.time_s > 0))
      .map((candidate) => candidate.label(node, state.tree)),
  ];
  const interval = state.containsWholeBranch(node) ? boxEnergyInterval(node, state.branches) : null;
  if (interval) parts.push(`between ${formatJoules(interval.low_j)} and ${formatJoules(interval.high_j)}`);
  return parts.join(", ");
}

function drawBox(node, left, width, depth, { state, measure, hits, zoom }) {
  const label = measure.label(node, state.tree);
  const colour = colourProperty(node.slot, node.hue);
  const text = boxDescription(node, state, measure);
  const outer = node.label ? `${node.parent.full} › ${node.label}` : node.full;
  const classes = ["frame"];
  if (node === state.root) classes.push("focus");
  if (hits && !hits.withAncestors.has(node)) classes.push("dim");
  if (hits?.matches.has(node)) classes.push("hit");
  if (node.slot === "not attributed") classes.push("hatched");
  if (["root", "idle", "not attributed"].includes(node.slot)) classes.push("neutral");
  const element = h(
    "div",
    {
      class: classes.join(" "),
      role: "treeitem",
      tabindex: node === state.root ? "0" : "-1",
      "aria-level": String(depth + 1),
      "aria-label": `${outer}: ${text}`,
      "aria-expanded": node.children.length ? "true" : null,
      title: `${node.full}: ${text}`,
      style: {
        left: `${100 * left}%`,
        width: `max(calc(${100 * width}% - 1px), 1px)`,
        top: `${depth * ROW_HEIGHT_PX}px`,
      },
      onclick: () => zoom(node),
    },
    width * state.width > 34
      ? h("span", { class: "frame-name", "aria-hidden": "true" }, node.label ?? node.name)
      : null,
    " ",
    width * state.width > 110 ? h("span", { class: "frame-value", "aria-hidden": "true" }, label) : null,
  );
  element.style.setProperty("--hue", `var(${colour})`);
  element.style.setProperty("--shade", `${node.shade}%`);
  node.element = element;
  return element;
}

// Keyboard navigation: arrows move up to the parent, down to the first child, sideways to siblings; Enter zooms in,
// Backspace zooms out by one level, Escape shows all.
function handleFlameKey(event, state, zoom) {
  const node = state.nodes.find((candidate) => candidate.element === document.activeElement);
  if (event.key === "Escape" || event.key === "Backspace") {
    event.preventDefault();
    return zoom(event.key === "Escape" ? state.tree : (state.root.parent ?? state.tree));
  }
  if (!node) return undefined;
  const siblings = (node.parent?.children ?? [node]).filter((sibling) => state.nodes.includes(sibling));
  const at = siblings.indexOf(node);
  const nodeByArrow = {
    ArrowUp: node.parent,
    ArrowDown: node.children.find((child) => state.nodes.includes(child)),
    ArrowLeft: siblings[at - 1],
    ArrowRight: siblings[at + 1],
  }[event.key];
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return zoom(node);
  }
  if (!event.key.startsWith("Arrow")) return undefined;
  event.preventDefault();
  if (nodeByArrow?.element) nodeByArrow.element.focus();
  return undefined;
}
