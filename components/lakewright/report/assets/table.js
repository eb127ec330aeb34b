"use strict";
/* The table of tenants: search, filters, order, groups by owner, keyboard. */

const LEVELS = ["none", "ok", "warn", "bad"];
const rank = (section) => LEVELS.indexOf(section?.level ?? "none");
const isExpiring = (tenant) => tenant.shares.some((share) => share.level === "warn" || share.level === "bad");

const FILTERS = {
  all: ["All", () => true],
  attention: ["Needs attention", (tenant) => rank(tenant) >= 2],
  drift: ["Drift", (tenant) => rank(tenant.drift) >= 2],
  checks: ["Failed checks", (tenant) => rank(tenant.checks) >= 2],
  verify: ["Not proven", (tenant) => rank(tenant.verify) >= 2],
  restrictions: ["Archived or limited", (tenant) => tenant.restrictions?.archives.length > 0 || tenant.restrictions?.limited_parts.length > 0],
  maintenance: ["Failed maintenance", (tenant) => rank(tenant.runs) >= 2],
  shares: ["Expiring shares", isExpiring],
};

const absent = (text) => make("span", { class: "absent" }, text);
const makeAsOf = (section, now) => (section?.as_of ? make("div", { class: "as-of", title: "A later run failed, or does not have this tenant" }, makeTime(section.as_of, now)) : null);
const makeResult = (section) => (section ? makeLevel(section.level, section.text) : absent("-"));
const makeGrowth = (growth) => (growth
  ? make("span", { title: `since ${growth.since.slice(0, 10)}` }, `${growth.bytes < 0 ? "" : "+"}${formatBytes(growth.bytes)}`) : absent("-"));

function makeMaintenance(runs, now) {
  if (!runs?.count) return absent(runs ? "no runs" : "-");
  return makeLevel(runs.level, runs.failed && runs.level === "bad" ? `${runs.failed} of ${runs.count} failed` : [makeTime(runs.last, now)]);
}

function makeExpiry(tenant, now) {
  const ending = tenant.shares.filter((share) => share.ends_at).sort((first, second) => Date.parse(first.ends_at) - Date.parse(second.ends_at));
  if (!ending.length) return absent("-");
  const level = makeLevel(ending[0].level, [ending[0].name, " ", formatAge(ending[0].ends_at, now)]);
  level.title = formatEnd(ending[0]);
  return level;
}

const MOST_STATE_LETTERS = 60;

function makeState(state) {
  const isLong = state.text.length > MOST_STATE_LETTERS;
  const level = makeLevel(state.level, isLong ? `${state.text.slice(0, MOST_STATE_LETTERS)}\u2026` : state.text);
  if (isLong) level.title = state.text;
  return level;
}

const measured = (tenant) => (tenant.usage?.is_measured ? tenant.usage : null);
/** Sums leave out tenants that may no longer exist. */
const counted = (tenant) => (tenant.missing_since ? null : measured(tenant));

/** Columns: title, section whose age a cell shows, value to sort by, content of a cell, class. Larger values come first, names in their order. */
const TABLE_COLUMNS = {
  state: { title: "State", section: "state", kind: "state", value: (tenant) => rank(tenant.state), cell: (tenant) => makeState(tenant.state) },
  drift: { title: "Drift", section: "drift", value: (tenant) => rank(tenant.drift) * 1e6 + (tenant.drift?.count ?? 0), cell: (tenant) => makeResult(tenant.drift) },
  checks: { title: "Checks", section: "checks", value: (tenant) => rank(tenant.checks), cell: (tenant) => makeResult(tenant.checks) },
  verify: { title: "Verify", section: "verify", value: (tenant) => rank(tenant.verify), cell: (tenant) => makeResult(tenant.verify) },
  live: { title: "Live", section: "usage", kind: "number", value: (tenant) => measured(tenant)?.live ?? -1, cell: (tenant) => (measured(tenant) ? formatBytes(tenant.usage.live) : absent("-")) },
  growth: { title: "Growth", kind: "number growth", value: (tenant) => measured(tenant)?.growth?.bytes ?? -Infinity, cell: (tenant) => makeGrowth(measured(tenant)?.growth) },
  reclaimable: { title: "Reclaimable", kind: "number", value: (tenant) => measured(tenant)?.reclaimable ?? -1, cell: (tenant) => (measured(tenant) ? formatBytes(tenant.usage.reclaimable) : absent("-")) },
  maintenance: { title: "Maintenance", section: "runs", value: (tenant) => tenant.runs?.last ?? "", cell: (tenant, now) => makeMaintenance(tenant.runs, now) },
  shares: { title: "Next expiry", value: (tenant) => (isExpiring(tenant) ? 1 : 0), cell: makeExpiry, isShown: (report) => report.tenants.some((tenant) => tenant.shares.some((share) => share.until)) },
};

/** Rows that are made at once. More follow when the end of the table comes into view: a browser takes seconds for thousands. */
const ROWS_AT_ONCE = 150;
const view = { query: "", filter: "all", environment: "", sort: "attention", descending: true, isGrouped: true, open: new Set(), limit: ROWS_AT_ONCE };

function compareTenants(first, second) {
  const column = TABLE_COLUMNS[view.sort];
  const value = view.sort === "attention" ? rank : column?.value;
  if (value) {
    const [a, b] = [value(first), value(second)];
    if (a !== b) return (a < b ? 1 : -1) * (view.descending ? 1 : -1);
  }
  return first.stack.localeCompare(second.stack) * (view.sort === "name" && view.descending ? -1 : 1);
}

const listWords = (tenant) => [tenant.stack, tenant.tenant, tenant.owner, tenant.environment, tenant.state.text,
  ...Object.entries(tenant.labels).map(([name, value]) => `${name}=${value}`)].join("\n").toLowerCase();

function selectTenants(report) {
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  const [, isSelected] = FILTERS[view.filter];
  return report.tenants.filter((tenant) => isSelected(tenant) && (!view.environment || tenant.environment === view.environment)
    && words.every((word) => listWords(tenant).includes(word))).sort(compareTenants);
}

function groupByOwner(tenants) {
  if (!view.isGrouped) return [["", tenants]];
  const groups = new Map();
  for (const tenant of tenants) {
    if (!groups.has(tenant.owner)) groups.set(tenant.owner, []);
    groups.get(tenant.owner).push(tenant);
  }
  return [...groups];
}

function makeOwnerRow(owner, tenants, span) {
  const sum = (name) => tenants.reduce((total, tenant) => total + (counted(tenant)?.[name] ?? 0), 0);
  const sizes = tenants.some(counted) ? `, ${formatBytes(sum("live"))} live, ${formatBytes(sum("reclaimable"))} reclaimable` : "";
  return make("tr", { class: "owner", role: "row" }, make("th", { scope: "rowgroup", colspan: span, role: "rowheader" }, owner || "No owner",
    make("span", { class: "sums" }, `${formatPlural(tenants.length, "tenant")}${sizes}`)));
}

function makeTenantRow(tenant, columns, now, onToggle) {
  const isOpen = view.open.has(tenant.stack);
  const name = tenant.tenant || tenant.stack;
  const context = [tenant.stack !== name && tenant.stack, tenant.environment].filter(Boolean).join(" \u00b7 ");
  const button = make("button", { type: "button", "aria-expanded": String(isOpen), "data-stack": tenant.stack, onclick: () => onToggle(tenant) }, name);
  return make("tr", { class: "tenant", role: "row" },
    make("th", { scope: "row", role: "rowheader" }, button, context && make("div", { class: "where" }, context)),
    columns.map(([, column]) => make("td", { class: column.kind, role: "cell", "data-label": column.title }, column.cell(tenant, now), makeAsOf(tenant[column.section], now))));
}

function makeDetailsRow(tenant, span, now) {
  return make("tr", { class: "details", role: "row", "data-details": tenant.stack }, make("td", { colspan: span, role: "cell" }, makeDetails(tenant, now)));
}

function makeHead(columns, onSort) {
  const cell = (name, title, kind) => make("th", {
    scope: "col", class: kind, role: "columnheader", "aria-sort": view.sort === name ? (view.descending ? "descending" : "ascending") : null,
  }, make("button", { type: "button", "data-sort": name, onclick: () => onSort(name) }, title));
  return make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, cell("name", "Tenant"),
    columns.map(([name, column]) => cell(name, column.title, column.kind))));
}

/** Return the row at the end of an incomplete table, which is completed when it comes into view or is pressed. */
function makeMoreRow(total, span, onMore) {
  const button = make("button", { type: "button", id: "more", onclick: () => onMore(Infinity) }, `Show all ${formatPlural(total, "tenant")}`);
  const row = make("tr", { role: "row" }, make("td", { class: "empty", colspan: span, role: "cell" }, button));
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    onMore(view.limit + ROWS_AT_ONCE);
  }, { rootMargin: "600px" }).observe(row);
  return make("tfoot", { role: "rowgroup", class: "no-print" }, row);
}

/** Return the table of the selected tenants, limited to the rows of this moment. */
function makeTable(report, tenants, now, { onToggle, onSort, onMore }) {
  const columns = Object.entries(TABLE_COLUMNS).filter(([, column]) => column.isShown?.(report) ?? true);
  const span = columns.length + 1;
  let remaining = view.limit;
  const groups = groupByOwner(tenants).map(([owner, group]) => {
    const rows = group.slice(0, remaining);
    remaining -= rows.length;
    return { owner, group, rows };
  });
  const bodies = groups.filter(({ rows }) => rows.length).map(({ owner, group, rows }) => make("tbody", { role: "rowgroup" },
    view.isGrouped && makeOwnerRow(owner, group, span),
    rows.map((tenant) => [makeTenantRow(tenant, columns, now, onToggle), view.open.has(tenant.stack) && makeDetailsRow(tenant, span, now)])));
  const empty = make("tbody", { role: "rowgroup" }, make("tr", { role: "row" }, make("td", { class: "empty", colspan: span, role: "cell" }, "No tenant matches.")));
  return make("table", { class: "fleet", role: "table" }, make("caption", { class: "hidden-text" }, "Tenants"), makeHead(columns, onSort), bodies.length ? bodies : empty,
    tenants.length > view.limit && makeMoreRow(tenants.length, span, onMore));
}

/** Move the focus among the names of tenants: arrows, Home, End. Escape closes the details. */
function moveFocus(event, table) {
  const buttons = [...table.querySelectorAll("button[data-stack]")];
  const index = buttons.indexOf(document.activeElement);
  if (event.key === "Escape") {
    const details = document.activeElement.closest("tr.details");
    const button = details ? buttons.find((candidate) => candidate.dataset.stack === details.dataset.details) : buttons[index];
    if (button?.getAttribute("aria-expanded") === "true") button.click();
    return;
  }
  const target = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (index < 0 || target === undefined) return;
  event.preventDefault();
  buttons[Math.min(Math.max(target, 0), buttons.length - 1)].focus();
}
