"use strict";
/* Charts of the fleet: storage over time or by owner, and cost and gain of maintenance by day. */

const MOST_OWNERS = 5;
const PLOT_HEIGHT = 190;
const TIME_STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 18000, 36000, 86400, 432000, 864000];
let plots = [];

/** Return the value of a color variable: canvases cannot use variables. */
function readColor(name) {
  const probe = make("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

function makeAxes(formats) {
  const [stroke, line] = [readColor("--muted"), readColor("--line")];
  const font = "12px system-ui, sans-serif";
  const common = { stroke, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const values = formats.map(({ scale, format, incrs }, index) => ({
    ...common, scale, ...(incrs && { incrs }), side: index === 0 ? 3 : 1, size: 64, grid: { ...common.grid, show: index === 0 },
    values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick))),
  }));
  return [{ ...common, size: 30, grid: { show: false }, values: [[86400, "{D} {MMM}"], [3600, "{D} {MMM} {HH}:{mm}"], [1, "{HH}:{mm}"]].map(([size, form]) => [size, form, null, null, null, null, null, null, 1]) }, ...values];
}

function drawPlot(figure, options, data) {
  const plot = new uPlot({
    width: Math.max(figure.clientWidth, 240), height: PLOT_HEIGHT, legend: { show: false }, cursor: { drag: { x: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"), ...options,
  }, data, figure);
  plots.push({ plot, figure });
}

const toSeconds = (text) => Date.parse(text) / 1000;

function drawStorage(figure, points) {
  const [live, reclaimable] = [readColor("--series-1"), readColor("--series-2")];
  const marker = { show: true, size: 6 };
  drawPlot(figure, {
    axes: makeAxes([{ scale: "y", format: formatBytes }]), scales: { y: { range: (_, __, most) => [0, most * 1.08 || 1] } },
    series: [{}, { label: "Live", stroke: live, width: 2, points: marker }, { label: "Reclaimable", stroke: reclaimable, width: 2, points: marker }],
  }, [points.map((point) => toSeconds(point.at)), points.map((point) => point.live), points.map((point) => point.reclaimable)]);
}

function drawMaintenance(figure, days) {
  const [cost, gain] = [readColor("--series-1"), readColor("--series-2")];
  const times = days.map((day) => toSeconds(day.day));
  const fromZero = { range: (_, __, most) => [0, most * 1.1 || 1] };
  drawPlot(figure, {
    axes: makeAxes([{ scale: "y", format: formatSeconds, incrs: TIME_STEPS }, { scale: "files", format: formatCount }]),
    scales: { x: { range: [times[0] - 43200, times.at(-1) + 43200] }, y: fromZero, files: fromZero },
    series: [{},
      { label: "Run time", stroke: cost, fill: cost, paths: uPlot.paths.bars({ size: [0.5, 40] }), points: { show: false } },
      { label: "Removed files", scale: "files", stroke: gain, width: 2, points: { show: true, size: 7, fill: gain } }],
  }, [times, days.map((day) => day.seconds), days.map((day) => day.removed_files)]);
}

/** Return the sums of storage by owner, the largest first. */
function sumOwners(tenants) {
  const sums = new Map();
  for (const tenant of tenants.filter(counted)) {
    const sum = sums.get(tenant.owner) ?? { owner: tenant.owner || "no owner", live: 0, reclaimable: 0 };
    sum.live += tenant.usage.live;
    sum.reclaimable += tenant.usage.reclaimable;
    sums.set(tenant.owner, sum);
  }
  return [...sums.values()].sort((first, second) => second.live - first.live);
}

function makeOwnerBars(owners) {
  const most = Math.max(...owners.map((owner) => owner.live + owner.reclaimable), 1);
  return make("ul", { class: "bars" }, owners.slice(0, MOST_OWNERS).map((owner) => {
    const parts = ["live", "reclaimable"].map((name) => {
      const part = make("span", { class: name });
      part.style.width = `${(100 * owner[name]) / most}%`;
      return part;
    });
    return make("li", {}, make("span", {}, owner.owner),
      make("span", { class: "number" }, formatBytes(owner.live), make("span", { class: "hidden-text" }, ` live, ${formatBytes(owner.reclaimable)} reclaimable`)),
      make("span", { class: "track", "aria-hidden": "true" }, parts));
  }));
}

function makeChart(title, note, key, content) {
  return make("section", { class: "card chart" },
    make("header", {}, make("h2", {}, title), make("span", { class: "muted small" }, note)), content,
    make("div", { class: "key", "aria-hidden": "true" }, key.map((name, index) => make("span", { class: index ? "second" : null }, name))));
}

function describeChange(points, format) {
  const [first, last] = [points[0], points.at(-1)];
  return `from ${format(first)} to ${format(last)}`;
}

/** Return the charts of a report; null if there is nothing to draw. */
function makeCharts(report) {
  plots = [];
  const owners = sumOwners(report.tenants);
  const { usage, maintenance } = report.history;
  const drawings = [];
  const cards = [];
  if (usage.length > 1) {
    const text = describeChange(usage, (point) => formatBytes(point.live));
    const figure = make("div", { class: "plot", role: "img", "aria-label": `Live storage of all tenants, ${text}` });
    drawings.push(() => drawStorage(figure, usage));
    cards.push(makeChart("Storage", text, ["Live", "Reclaimable"], figure));
  }
  if (owners.length) {
    const note = owners.length > MOST_OWNERS ? `largest ${MOST_OWNERS} of ${owners.length}` : "";
    cards.push(makeChart("Storage by owner", note, ["Live", "Reclaimable"], makeOwnerBars(owners)));
  }
  if (maintenance.length) {
    const [seconds, files] = ["seconds", "removed_files"].map((name) => maintenance.reduce((sum, day) => sum + day[name], 0));
    const text = `${formatSeconds(seconds)} of work removed ${formatPlural(files, "file")}`;
    const figure = make("div", { class: "plot", role: "img", "aria-label": `Maintenance by day: ${text}` });
    drawings.push(() => drawMaintenance(figure, maintenance));
    cards.push(makeChart("Maintenance by day", text, ["Run time", "Removed files"], figure));
  }
  return cards.length ? { element: make("div", { class: "charts" }, cards), draw: () => redrawCharts(drawings) } : null;
}

/** Draw all charts with the colors and the width of this moment. */
function redrawCharts(drawings) {
  for (const { plot } of plots) plot.destroy();
  plots = [];
  for (const draw of drawings) draw();
}
