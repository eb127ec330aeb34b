"use strict";
/* Make elements and texts. All texts become text nodes, so no name is ever read as HTML. */

const SVG = "http://www.w3.org/2000/svg";

/** Set attributes and append children: nodes, texts, or lists of them. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const makeSvg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/** Return a size in decimal units: 1.5 GB. */
function formatBytes(bytes) {
  let size = Math.abs(bytes);
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : 1;
  return `${bytes < 0 ? "\u2212" : ""}${size.toFixed(digits)}\u00a0${UNITS[unit]}`;
}

const formatCount = (count) => count.toLocaleString("en-US");
const formatPlural = (count, noun) => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Return a duration: 42 s, 3.5 min, 2.1 h. */
function formatSeconds(seconds) {
  if (seconds < 120) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)}\u00a0s`;
  return seconds < 7200 ? `${Number((seconds / 60).toFixed(1))}\u00a0min` : `${Number((seconds / 3600).toFixed(1))}\u00a0h`;
}

/** Return the time since an instant, or until it: 5 min ago, in 3 days. */
function formatAge(text, now) {
  const seconds = Math.round((now - Date.parse(text)) / 1000);
  if (Number.isNaN(seconds)) return text;
  const distance = Math.abs(seconds);
  const [size, noun] = distance < 90 ? [1, "s"] : distance < 5400 ? [60, "min"] : distance < 129600 ? [3600, "h"] : [86400, "day"];
  const count = Math.round(distance / size);
  const amount = noun === "day" ? formatPlural(count, "day") : `${count}\u00a0${noun}`;
  return seconds < 0 ? `in ${amount}` : `${amount} ago`;
}

/** Return the end of a share as its spec has it: a day is the last day, and is included. */
const formatEnd = (share) => (/^\d{4}-\d{2}-\d{2}$/.test(share.until) ? `through ${share.until}` : share.until);

/** Return a time element: its age, and the instant in UTC as its title. */
function makeTime(text, now) {
  if (!text) return null;
  const isTime = !Number.isNaN(Date.parse(text));
  const instant = isTime ? new Date(text).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") : text;
  return make("time", { datetime: isTime ? text : null, title: instant }, formatAge(text, now));
}

const makeLevel = (level, text) => make("span", { class: `level ${level}` }, text);
const makeBadge = (level, text) => make("span", { class: `badge ${level}` }, text);

/** Return a table that becomes a list of cards on narrow screens. Columns: [title, class]; cells: texts or nodes. */
function makeCards(caption, columns, rows) {
  return make("table", { class: "cards", role: "table" },
    make("caption", { class: "hidden-text" }, caption),
    make("thead", { role: "rowgroup" },
      make("tr", { role: "row" }, columns.map(([title, kind]) => make("th", { scope: "col", class: kind, role: "columnheader" }, title)))),
    make("tbody", { role: "rowgroup" }, rows.map((cells) => make("tr", { role: "row" },
      cells.map((cell, index) => make("td", { class: columns[index][1], role: "cell", "data-label": columns[index][0] }, cell))))));
}
