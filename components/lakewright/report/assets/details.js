"use strict";
/* The details of a tenant, which are made when its row is opened. */

const HOW_TO = {
  drift: "Not compared. Run: lakewright drift",
  checks: "No checks in the spec, or not evaluated. Run: lakewright check",
  verify: "Not verified. Run: lakewright verify",
  restrictions: "Not read. Run: lakewright fleet status",
  usage: "Not measured. Run: lakewright fleet usage",
  runs: "No runs are known. Run: lakewright fleet runs",
};

function makeSection(title, section, kind, makeContent, now) {
  return make("section", {},
    make("h3", {}, title, section?.text && makeLevel(section.level, section.text), makeAsOf(section, now)),
    section ? [section.problems?.map((problem) => make("p", { class: "problem small" }, problem)), makeContent(section)] : make("p", { class: "muted small" }, HOW_TO[kind]));
}

const makeValue = (text) => (text ? make("span", { class: "value" }, text) : null);
const KIND_LEVELS = { changed: "bad", gone: "bad", unmanaged: "warn", unreachable: "warn", check: "bad" };

function makeDrift(drift, now) {
  if (!drift.items.length) return null;
  return makeCards("Differences between the stack and the servers",
    [["Object", "wide"], ["Kind"], ["Property"], ["Declared", "wide"], ["Found", "wide"], ["Changed by"]],
    drift.items.map((item) => [
      [item.resource, make("div", { class: "muted small" }, item.type)],
      item.ignored ? makeBadge("none", "ignored") : makeBadge(KIND_LEVELS[item.kind] ?? "none", item.kind),
      item.property, makeValue(item.declared), makeValue(item.found),
      item.ignored ? [item.ignored, item.until && ` until ${item.until}`] : [item.actor, item.at && [" ", makeTime(item.at, now)]],
    ]));
}

const OUTCOMES = { passed: "ok", failed: "bad", "not evaluated": "warn" };

function makeChecks(checks) {
  if (!checks.items.length) return null;
  return makeCards("Checks of the spec", [["Check", "wide"], ["Assertion"], ["Expected"], ["Found"], ["Result"]],
    checks.items.map((item) => [item.check, item.assertion, item.expected, item.found, makeLevel(OUTCOMES[item.outcome] ?? "none", item.outcome)]));
}

function makeVerification(verify) {
  if (!verify.items.length) return null;
  return makeCards("Probes that do not hold", [["Probe", "wide"], ["Identity"], ["Expected"], ["Found"], ["Evidence", "wide"]],
    verify.items.map((item) => [
      [item.probe, make("div", { class: "muted small" }, item.attempt)], [item.identity, item.warehouse && ` / ${item.warehouse}`], item.expected, item.found,
      [item.evidence, item.remedy && make("div", { class: "small" }, `To fix it: ${item.remedy}`)],
    ]));
}

function makePurge(archive, now) {
  if (archive.has_begun) return makeLevel("warn", archive.problem ? `has begun, and does not continue: ${archive.problem}` : "has begun");
  if (archive.problem) return makeLevel("warn", archive.problem);
  if (!archive.purge_at) return archive.is_reactivated ? "never: the next up reactivates it" : "never";
  const day = `${archive.purge_at.slice(0, 10)} (${formatAge(archive.purge_at, now)})`;
  const announcement = archive.announced_at ? "announced" : "not announced";
  return makeLevel(archive.announced_at ? "warn" : "none", `${day}, ${announcement}${archive.is_reactivated ? ", unless up runs before" : ""}`);
}

function makeRestrictions(restrictions, now) {
  const { archives, limits, suspended } = restrictions;
  return [
    archives.length > 0 && [
      makeCards("Archived warehouses", [["Warehouse", "wide"], ["Archived"], ["Data is deleted", "wide"]],
        archives.map((archive) => [archive.warehouse, makeTime(archive.archived_at, now), makePurge(archive, now)])),
      make("p", { class: "muted small" }, "To reactivate a warehouse, declare it with adopt: true and run lakewright up."),
    ],
    limits.length > 0 && makeCards("Enforced limits", [["Limit of", "wide"], ["Quantity"], ["Limit", "number"], ["Since"]],
      limits.map((limit) => [limit.part, limit.quantity, limit.quantity === "bytes" ? formatBytes(Number(limit.limit)) : limit.limit, makeTime(limit.since, now)])),
    suspended.length > 0 && makeCards("Suspended grants", [["Principal", "wide"], ["Privilege"], ["On", "wide"]],
      suspended.map((grant) => [grant.principal, grant.privilege, grant.on])),
  ];
}

function makeUsage(usage) {
  if (!usage.is_measured) return null;
  const growth = usage.growth ? `, ${usage.growth.bytes < 0 ? "" : "+"}${formatBytes(usage.growth.bytes)} since ${usage.growth.since.slice(0, 10)}` : "";
  return [
    make("p", { class: "small" }, `${formatBytes(usage.live)} live${growth}; ${formatBytes(usage.reclaimable)} reclaimable; ${formatPlural(usage.tables, "table")}, ${formatPlural(usage.files, "file")}`),
    usage.largest.length > 0 && makeCards("Largest tables",
      [["Largest tables", "wide"], ["Live", "number"], ["Reclaimable", "number"], ["Files", "number"], ["Snapshots", "number"]],
      usage.largest.map((table) => [table.table, formatBytes(table.live), formatBytes(table.reclaimable), formatCount(table.files), formatCount(table.snapshots)])),
  ];
}

const RUN_LEVELS = { SUCCEEDED: "ok", FAILED: "bad", CANCELLED: "bad", SKIPPED: "none" };

function makeRuns(runs, now) {
  if (!runs.items.length) return make("p", { class: "muted small" }, "No runs in this time.");
  const more = runs.count - runs.items.length;
  return [
    makeCards("Maintenance runs", [["Job"], ["Table", "wide"], ["State"], ["Finished"], ["Time", "number"], ["Gain", "wide"]],
      runs.items.map((run) => [
        run.job, run.table, makeLevel(RUN_LEVELS[run.state] ?? "warn", run.state.toLowerCase()), makeTime(run.at, now), formatSeconds(run.seconds),
        run.gain || (run.state === "SUCCEEDED" ? "" : run.reason),
      ])),
    more > 0 && make("p", { class: "muted small" }, `and ${more} earlier`),
  ];
}

function makeShares(shares, now) {
  return make("section", {}, make("h3", {}, "Shares"),
    makeCards("Shares", [["Share"], ["Warehouse"], ["Principal", "wide"], ["Expires"]], shares.map((share) => [
      share.name, share.warehouse, make("span", { class: "code" }, share.principal),
      share.until ? makeLevel(share.level, [formatEnd(share), share.ends_at && ` (${formatAge(share.ends_at, now)})`]) : make("span", { class: "muted" }, "never"),
    ])));
}

function makeFacts(tenant, now) {
  const labels = Object.entries(tenant.labels).map(([name, value]) => `${name}=${value}`).join(", ");
  const facts = [["Stack", tenant.stack], ["State", [makeLevel(tenant.state.level, tenant.state.text), makeAsOf(tenant.state, now)]], ["Owner", tenant.owner], ["Environment", tenant.environment], ["Labels", labels],
    ["Resources", tenant.resources === null ? "" : formatCount(tenant.resources)], ["Last update", makeTime(tenant.updated, now)]];
  return make("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([title, value]) => make("div", {}, make("dt", {}, title), make("dd", {}, value))));
}

/** Return the details of a tenant. */
function makeDetails(tenant, now) {
  const hasParts = tenant.declared && (tenant.declared.buckets.length || tenant.declared.warehouses.length || tenant.declared.units.length);
  return make("div", { class: "inside" },
    makeFacts(tenant, now),
    hasParts && make("section", {}, make("h3", {}, "Declared parts"), makeDiagram(tenant.declared)),
    makeSection("Drift", tenant.drift, "drift", (section) => makeDrift(section, now), now),
    makeSection("Checks", tenant.checks, "checks", makeChecks, now),
    makeSection("Verify", tenant.verify, "verify", makeVerification, now),
    makeSection("Archives and limits", tenant.restrictions, "restrictions", (section) => makeRestrictions(section, now), now),
    makeSection("Storage", tenant.usage, "usage", makeUsage, now),
    makeSection("Maintenance", tenant.runs, "runs", (section) => makeRuns(section, now), now),
    tenant.shares.length > 0 && makeShares(tenant.shares, now));
}
