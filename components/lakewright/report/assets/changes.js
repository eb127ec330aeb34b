"use strict";
/* The page of a preview: each step with its whole documents, unchanged lines folded. */

const preview = JSON.parse(document.getElementById("data").textContent);
const CONTEXT = 3;
const FOLDED_LINES = 10;
const OP_LEVELS = { create: "ok", adopt: "ok", import: "ok", delete: "bad", replace: "bad", "create-replacement": "bad", "delete-replaced": "bad" };
const LINE_KINDS = { "+": ["added", "added: "], "-": ["removed", "removed: "], " ": [null, ""] };

function makeLine([sign, text]) {
  const [kind, spoken] = LINE_KINDS[sign];
  return make("div", { class: kind }, make("span", { class: "sign", "aria-hidden": "true" }, sign), make("span", {}, spoken && make("span", { class: "hidden-text" }, spoken), text));
}

/** Return the lines of a document. A long run of unchanged lines becomes a button that shows them. */
function makeLines(lines) {
  const near = lines.map((_, index) => lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(([sign]) => sign !== " "));
  const parts = [];
  for (let index = 0; index < lines.length;) {
    let end = index;
    while (end < lines.length && !near[end]) end += 1;
    if (end - index >= FOLDED_LINES) parts.push(makeFold(lines.slice(index, end)));
    else end = Math.max(end, index + 1);
    if (end - index < FOLDED_LINES) parts.push(...lines.slice(index, end).map(makeLine));
    index = end;
  }
  return make("div", { class: "lines" }, parts);
}

function makeFold(lines) {
  const button = make("button", { type: "button", onclick: () => button.replaceWith(...lines.map(makeLine)) }, `Show ${formatPlural(lines.length, "unchanged line")}`);
  return button;
}

function makeDocument(file) {
  const count = (sign) => file.lines.filter(([lineSign]) => lineSign === sign).length;
  return make("details", { open: file.changed }, make("summary", {}, file.title,
    make("span", { class: "count" }, file.changed ? `+${count("+")} \u2212${count("-")}` : "unchanged")), makeLines(file.lines));
}

function makeStep(step) {
  return make("article", { class: "card step" },
    make("header", {}, makeBadge(OP_LEVELS[step.op] ?? "warn", step.op), make("h3", {}, step.name), make("span", { class: "muted small code" }, step.type),
      step.failed && makeLevel("bad", "failed")),
    step.documents.map(makeDocument));
}

function makeSteps(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (step) => words.every((word) => `${step.op}\n${step.name}\n${step.type}\n${step.part}`.toLowerCase().includes(word));
  const parts = Map.groupBy(preview.steps.filter(matches), (step) => step.part);
  const sections = [...parts].map(([part, steps]) => make("section", { class: "part" }, make("h2", {}, part), steps.map(makeStep)));
  return sections.length ? sections : [make("p", { class: "card empty" }, preview.steps.length ? "No step matches." : "Nothing changes.")];
}

function renderChanges() {
  const steps = make("div", {}, makeSteps(""));
  const search = make("input", { type: "search", id: "search", "aria-label": "Search steps", placeholder: "Search name, type or operation",
    oninput: () => steps.replaceChildren(...makeSteps(search.value)) });
  const changes = Object.entries(preview.changes).filter(([op]) => op !== "same").map(([op, count]) => makeBadge(OP_LEVELS[op] ?? "warn", `${formatCount(count)} ${op}`));
  const subtitle = [`${preview.verb} of `, make("time", { datetime: preview.at }, preview.at.replace("T", " ").replace("Z", " UTC"))];
  document.getElementById("page").replaceChildren(
    make("header", { class: "topbar" }, makeBrand(preview.stack, subtitle), make("div", { class: "actions" }, makeThemeControl())),
    make("main", {},
      make("section", { class: "card summary", "aria-label": "Summary" }, changes.length ? changes : make("span", { class: "muted" }, "No changes"), search),
      preview.messages.length > 0 && make("section", { class: "card notice" }, make("h2", {}, "Messages"), make("ul", { class: "small" }, preview.messages.map((text) => make("li", {}, text)))),
      steps),
    make("footer", { class: "muted small" }, "Made by Lakewright. This page loads nothing from other places."));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select")) return;
    event.preventDefault();
    search.focus();
  });
}

renderChanges();
