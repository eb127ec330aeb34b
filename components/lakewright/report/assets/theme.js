"use strict";
/* Light, dark or the system's mode, remembered in the browser. */

const THEMES = { system: "System", light: "Light", dark: "Dark" };
const THEME_KEY = "lakewright-theme";

function readTheme() {
  try {
    return localStorage.getItem(THEME_KEY) ?? "system";
  } catch {
    return "system"; // a browser may refuse storage to files
  }
}

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
}

/** Return the control that chooses the mode. */
function makeThemeControl() {
  const select = make("select", { "aria-label": "Color mode", onchange: () => {
    try {
      localStorage.setItem(THEME_KEY, select.value);
    } catch {
      // The mode then lasts until the page is closed.
    }
    applyTheme(select.value);
  } }, Object.entries(THEMES).map(([value, title]) => make("option", { value }, title)));
  select.value = readTheme() in THEMES ? readTheme() : "system";
  return select;
}

function makeBrand(title, subtitle) {
  return make("div", { class: "brand" },
    makeSvg("svg", { width: 26, height: 26, viewBox: "0 0 26 26", "aria-hidden": "true" },
      makeSvg("path", { d: "M3 8c3.3-3 6.7-3 10 0s6.7 3 10 0", fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round" }),
      makeSvg("path", { d: "M3 14c3.3-3 6.7-3 10 0s6.7 3 10 0", fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round", opacity: 0.65 }),
      makeSvg("path", { d: "M3 20c3.3-3 6.7-3 10 0s6.7 3 10 0", fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round", opacity: 0.35 })),
    make("div", {}, make("h1", {}, title), subtitle && make("div", { class: "muted small" }, subtitle)));
}

applyTheme(readTheme());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
