// SPDX-License-Identifier: Apache-2.0
//
// Light or dark theme: as the system prefers, unless the reader chooses another;
// always light in print. onTheme() registers functions that redraw charts when the theme changes.
import { h } from "./dom.js";

const listeners = new Set();
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
let chosen = null;

export function onTheme(listener) {
  listeners.add(listener);
}

export const isDark = () => root.dataset.theme === "dark";

function show(theme) {
  if (root.dataset.theme === theme) return;
  root.dataset.theme = theme;
  for (const listener of listeners) listener();
}

const activeTheme = () => chosen ?? (system.matches ? "dark" : "light");
show(activeTheme());
addEventListener("beforeprint", () => show("light"));
addEventListener("afterprint", () => show(activeTheme()));

export function themeButton() {
  const button = h("button", { type: "button", class: "theme" });
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  button.addEventListener("click", () => {
    chosen = isDark() ? "light" : "dark";
    show(chosen);
  });
  system.addEventListener("change", () => show(activeTheme()));
  onTheme(label);
  label();
  return button;
}
