"use strict";
/* Put the page together. A written report has its data; the page of `lakewright ui` asks its server for it. */

const page = document.getElementById("page");
const OLD_SECONDS = 86400;
const SORTS = { attention: "Attention", name: "Name", live: "Live", growth: "Growth", reclaimable: "Reclaimable", maintenance: "Maintenance" };
const TOKEN_KEY = "lakewright-ui-token";
const POLL_MILLISECONDS = 5000;
let report = null;
let table = null;
let charts = null;

function makeTile(title, value, note, level) {
  return make("dl", { class: "card tile" }, make("dt", {}, title), make("dd", { class: level }, value), make("dd", { class: "note" }, note));
}

function makeTiles() {
  const count = (isCounted) => report.tenants.filter(isCounted).length;
  const used = report.tenants.map(counted).filter(Boolean);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const growths = used.map((usage) => usage.growth?.bytes).filter((bytes) => bytes !== undefined);
  const tested = (name) => count((tenant) => tenant[name]);
  const result = (name, noun) => {
    const bad = count((tenant) => rank(tenant[name]) >= 2);
    return tested(name) ? [formatCount(bad), `of ${formatCount(tested(name))} ${noun}`, bad ? "bad" : null] : ["-", `no tenant ${noun}`, null];
  };
  const attention = count((tenant) => rank(tenant) >= 2);
  const uncounted = count((tenant) => tenant.usage && (!counted(tenant) || tenant.usage.level === "warn"));
  const notes = [growths.length && `${sum(growths) < 0 ? "" : "+"}${formatBytes(sum(growths))} growth`, uncounted && `${formatPlural(uncounted, "tenant")} not fully counted`];
  const note = notes.filter(Boolean).join(", ");
  return make("section", { class: "tiles", "aria-label": "Summary" },
    makeTile("Tenants", formatCount(report.tenants.length), attention ? `${formatCount(attention)} need${attention === 1 ? "s" : ""} attention` : "all in order"),
    makeTile("With drift", ...result("drift", "compared")),
    makeTile("Failed checks", ...result("checks", "with checks")),
    makeTile("Not proven isolated", ...result("verify", "verified")),
    makeTile("Live storage", used.length ? formatBytes(sum(used.map((usage) => usage.live))) : "-", used.length ? note : "not measured"),
    makeTile("Reclaimable", used.length ? formatBytes(sum(used.map((usage) => usage.reclaimable))) : "-", used.length ? "by expiring snapshots" : "not measured"));
}

function makeSources(now) {
  return make("section", { class: "card sources", "aria-labelledby": "sources-title" }, make("h2", { id: "sources-title" }, "Sources"),
    make("ul", {}, report.sources.map((source) => {
      const isOld = source.at && now - Date.parse(source.at) > OLD_SECONDS * 1000;
      const age = source.error ? ["failed", source.at && [", data of ", makeTime(source.at, now)]] : source.at ? makeTime(source.at, now) : source.origin ? "age unknown" : "none";
      return make("li", { title: source.origin || source.command }, makeLevel(source.error ? "bad" : isOld ? "warn" : source.level, [make("b", {}, source.kind), " ", age]));
    })));
}

function makeNotice(title, level, texts) {
  return texts.length > 0 && make("section", { class: `card notice ${level}` }, make("h2", {}, title), make("ul", { class: "small" }, texts.map((text) => make("li", {}, text))));
}

function makeToolbar(update) {
  const search = make("input", { type: "search", id: "search", placeholder: "Search name, owner, environment, label=value", "aria-label": "Search tenants", value: view.query,
    oninput: () => update({ query: search.value }) });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      table.querySelector("button[data-stack]")?.focus();
    } else if (event.key === "Escape" && search.value) {
      event.preventDefault();
      search.value = "";
      update({ query: "" });
    }
  });
  const shown = Object.entries(FILTERS).map(([name, [title, isSelected]]) => [name, title, report.tenants.filter(isSelected).length])
    .filter(([name, , count]) => count > 0 || name === "all" || name === view.filter);
  const filters = shown.map(([name, title, count]) => make("button", { type: "button", "data-filter": name, "aria-pressed": String(view.filter === name),
    onclick: () => update({ filter: name }) }, title, make("span", { class: "count" }, formatCount(count))));
  const environments = [...new Set(report.tenants.map((tenant) => tenant.environment).filter(Boolean))].sort();
  const environment = make("select", { id: "environment", "aria-label": "Environment", onchange: () => update({ environment: environment.value }) },
    make("option", { value: "" }, "All environments"), environments.map((name) => make("option", { value: name, selected: view.environment === name }, name)));
  const sort = make("select", { "aria-label": "Sort by", onchange: () => update({ sort: sort.value, descending: sort.value !== "name" }) },
    Object.entries(SORTS).map(([value, title]) => make("option", { value, selected: view.sort === value }, title)));
  const grouped = make("input", { type: "checkbox", id: "grouped", checked: view.isGrouped, onchange: () => update({ isGrouped: grouped.checked }) });
  return make("div", { class: "toolbar no-print", role: "search" }, make("div", { class: "search" }, search),
    environments.length > 1 && environment, make("label", { class: "narrow-sort" }, sort), make("label", {}, grouped, "By owner"),
    make("div", { class: "filters", role: "group", "aria-label": "Filters" }, filters),
    make("span", { class: "result muted small", role: "status", id: "result" }));
}

function makeHelp() {
  const keys = [["/", "Search"], ["\u2191 \u2193", "Previous and next tenant"], ["Enter", "Open or close a tenant"], ["Esc", "Close a tenant, clear the search"], ["?", "This help"]];
  return make("dialog", { id: "help", "aria-labelledby": "help-title" }, make("h2", { id: "help-title" }, "Keyboard"),
    make("dl", {}, keys.map(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)])),
    make("form", { method: "dialog" }, make("button", { autofocus: true, onclick: (event) => { event.preventDefault(); document.getElementById("help").close(); } }, "Close")));
}

/** Replace the table, and keep the focus on the same tenant. */
function renderTable() {
  const focused = document.activeElement?.dataset?.stack ?? document.activeElement?.dataset?.sort;
  const tenants = selectTenants(report);
  const next = makeTable(report, tenants, Date.now(), { onToggle: toggleTenant, onSort: sortTable, onMore: showMore });
  table.replaceWith(next);
  table = next;
  table.addEventListener("keydown", (event) => moveFocus(event, table));
  document.getElementById("result").textContent = tenants.length === report.tenants.length
    ? formatPlural(tenants.length, "tenant") : `${formatCount(tenants.length)} of ${formatPlural(report.tenants.length, "tenant")}`;
  if (focused) [...table.querySelectorAll("button[data-stack], button[data-sort]")].find((button) => (button.dataset.stack ?? button.dataset.sort) === focused)?.focus();
}

/** Open or close the details of one tenant in place. */
function toggleTenant(tenant) {
  const button = [...table.querySelectorAll("button[data-stack]")].find((candidate) => candidate.dataset.stack === tenant.stack);
  const row = button.closest("tr");
  const isOpen = view.open.has(tenant.stack);
  button.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) {
    view.open.delete(tenant.stack);
    row.nextElementSibling.remove();
    button.focus();
  } else {
    view.open.add(tenant.stack);
    row.after(makeDetailsRow(tenant, row.cells.length, Date.now()));
  }
}

function sortTable(name) {
  const isSame = view.sort === name;
  Object.assign(view, { sort: name, descending: isSame ? !view.descending : name !== "name" });
  renderTable();
}

function showMore(limit) {
  view.limit = limit;
  renderTable();
}

function updateView(changes) {
  Object.assign(view, changes, { limit: ROWS_AT_ONCE });
  for (const button of document.querySelectorAll("button[data-filter]")) button.setAttribute("aria-pressed", String(button.dataset.filter === view.filter));
  renderTable();
}

function renderPage(liveParts) {
  const [now, scroll, focused] = [Date.now(), window.scrollY, document.activeElement?.id];
  table = make("table");
  charts = makeCharts(report);
  const failed = report.sources.filter((source) => source.error).map((source) => `${source.command}: ${source.error}`);
  const causes = report.causes.map((cause) => `${cause.text} (${cause.stacks.join(", ")})`);
  const subtitle = liveParts ? liveParts.status : ["Report of ", make("time", { datetime: report.at }, report.at.replace("T", " ").replace("Z", " UTC"))];
  page.replaceChildren(
    make("header", { class: "topbar" }, makeBrand(report.title || "Lakewright", subtitle), make("div", { class: "actions" }, liveParts?.refresh,
      make("button", { type: "button", onclick: openHelp, "aria-label": "Keyboard help" }, "?"), makeThemeControl())),
    make("main", {}, makeNotice("Sources that failed", "bad", failed) || null, makeTiles(), makeSources(now),
      makeNotice("Causes of drift on several tenants", "", causes) || null, charts?.element ?? null,
      make("section", { class: "card", "aria-label": "Tenants" }, makeToolbar(updateView), table)),
    make("footer", { class: "muted small" }, "Made by Lakewright from the JSON of its commands. This page loads nothing from other places."),
    makeHelp());
  renderTable();
  charts?.draw();
  window.scrollTo(0, scroll);
  if (focused) document.getElementById(focused)?.focus();
}

const openHelp = () => document.getElementById("help").showModal();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea") || !report) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search").focus();
  } else if (event.key === "?") openHelp();
});
document.addEventListener("themechange", () => charts?.draw());
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) charts?.draw();
  width = window.innerWidth;
});
window.addEventListener("beforeprint", () => {
  applyTheme("light");
  showMore(Infinity);
});
window.addEventListener("afterprint", () => applyTheme(readTheme()));

report = JSON.parse(document.getElementById("data").textContent);
if (report) renderPage(null);
else startLive();

/** Read the report from the server of `lakewright ui` again and again. Its token is in the address that was opened. */
function startLive() {
  const token = location.hash.slice(1) || sessionStorage.getItem(TOKEN_KEY) || "";
  sessionStorage.setItem(TOKEN_KEY, token);
  history.replaceState(null, "", location.pathname);
  const status = make("span", { role: "status" }, "Live");
  const headers = { Authorization: `Bearer ${token}` };
  const refresh = make("button", { type: "button", onclick: async () => {
    refresh.disabled = true;
    await fetch("refresh", { method: "POST", headers }).catch(() => null);
    await poll();
    refresh.disabled = false;
  } }, "Refresh");
  let version = "";

  async function poll() {
    try {
      const response = await fetch("report.json", { headers: { ...headers, "If-None-Match": version }, cache: "no-store" });
      if (response.status === 200) {
        version = response.headers.get("ETag") ?? "";
        report = await response.json();
        renderPage({ status, refresh });
      } else if (response.status !== 304) throw new Error(response.status === 403 ? "open the address that `lakewright ui` printed" : `status ${response.status}`);
      status.textContent = report.is_collecting ? "Live, collecting" : "Live";
    } catch (error) {
      if (report) status.textContent = `The server does not respond: ${error.message}`;
      else page.replaceChildren(make("main", {}, make("section", { class: "card notice bad" }, make("h1", {}, "No report"), make("p", {}, error.message))));
    }
  }

  poll();
  setInterval(poll, POLL_MILLISECONDS);
}
