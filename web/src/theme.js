// SPDX-License-Identifier: Apache-2.0
//
// Light or dark theme: as the system prefers, unless the reader chooses another;
// always light in print. addThemeListener() registers functions that redraw charts when the theme changes.
import { h } from "./dom.js";

const themeListeners = new Set();
const darkSchemeQuery = matchMedia("(prefers-color-scheme: dark)");
const rootElement = document.documentElement;
let chosenTheme = null;

export function addThemeListener(listener) {
  themeListeners.add(listener);
}

export const isDarkTheme = () => rootElement.dataset.theme === "dark";

function applyTheme(theme) {
  if (rootElement.dataset.theme === theme) return;
  rootElement.dataset.theme = theme;
  for (const listener of themeListeners) listener();
}

const activeTheme = () => chosenTheme ?? (darkSchemeQuery.matches ? "dark" : "light");
applyTheme(activeTheme());
addEventListener("beforeprint", () => applyTheme("light"));
addEventListener("afterprint", () => applyTheme(activeTheme()));

export function themeButton() {
  const button = h("button", { type: "button", class: "theme" });
  const label = () => {
    button.textContent = isDarkTheme() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDarkTheme() ? "Use light colours" : "Use dark colours");
  };
  button.addEventListener("click", () => {
    chosenTheme = isDarkTheme() ? "light" : "dark";
    applyTheme(chosenTheme);
  });
  darkSchemeQuery.addEventListener("change", () => applyTheme(activeTheme()));
  addThemeListener(label);
  label();
  return button;
}
