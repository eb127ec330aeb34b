"use strict";
/* The diagram of a tenant: units use warehouses, whose roles reach a part of a bucket. Narrow screens get the list. */

const COLUMNS = [{ title: "Computing units", x: 0 }, { title: "Warehouses and namespaces", x: 212 }, { title: "Roles", x: 472 }, { title: "Buckets", x: 742 }];
const NODE_WIDTH = [170, 220, 230, 220];
const LINE_HEIGHT = 17;
const MOST_NAMESPACES = 8;
const GAP = 16;

const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1)}\u2026`);

/** Return the nodes of a tenant by column. Each has a key, a title, a kind and lines of text. */
function listNodes(declared) {
  const warehouses = declared.warehouses.map((warehouse) => {
    const names = warehouse.namespaces.slice(0, MOST_NAMESPACES);
    const more = warehouse.namespaces.length - names.length;
    return { key: `w:${warehouse.name}`, kind: "warehouse", title: warehouse.name, lines: more > 0 ? [...names, `and ${more} more`] : names, warehouse };
  });
  const roles = declared.warehouses.filter((warehouse) => warehouse.role).map((warehouse) => (
    { key: `r:${warehouse.name}`, kind: "role", title: warehouse.role.split("/").pop(), full: warehouse.role, lines: [warehouse.key_prefix] }));
  const buckets = declared.buckets.map((bucket) => (
    { key: `b:${bucket.storage}`, kind: bucket.backend || "bucket", title: bucket.bucket || bucket.storage, lines: bucket.region ? [bucket.region] : [] }));
  const units = declared.units.map((unit) => ({ key: `u:${unit.name}`, kind: unit.runtime || "unit", title: unit.name, lines: [], unit }));
  return [units, warehouses, roles, buckets];
}

function listEdges(declared) {
  const names = new Set(declared.warehouses.map((warehouse) => warehouse.name));
  const fromUnits = declared.units.flatMap((unit) => unit.warehouses.filter((name) => names.has(name)).map((name) => [`u:${unit.name}`, `w:${name}`]));
  const toBuckets = declared.warehouses.flatMap((warehouse) => (warehouse.role
    ? [[`w:${warehouse.name}`, `r:${warehouse.name}`], [`r:${warehouse.name}`, `b:${warehouse.storage}`]]
    : [[`w:${warehouse.name}`, `b:${warehouse.storage}`]]));
  return [...fromUnits, ...toBuckets];
}

function placeNodes(columns) {
  const heights = columns.map((nodes) => nodes.reduce((sum, node) => sum + measureNode(node) + GAP, -GAP));
  const height = Math.max(...heights, 40);
  const places = new Map();
  columns.forEach((nodes, column) => {
    let y = 28 + (height - heights[column]) / 2;
    for (const node of nodes) {
      places.set(node.key, { x: COLUMNS[column].x, y, width: NODE_WIDTH[column], height: measureNode(node), node });
      y += measureNode(node) + GAP;
    }
  });
  return { places, height: height + 36 };
}

const measureNode = (node) => 44 + node.lines.length * LINE_HEIGHT;

function drawNode({ x, y, width, height, node }) {
  const letters = Math.floor((width - 20) / 7.2);
  const lines = node.lines.map((line, index) => makeSvg("text", { class: "item", x: x + 10, y: y + 54 + index * LINE_HEIGHT - 1 }, shorten(line, letters)));
  return makeSvg("g", { class: `node ${node.kind === "warehouse" ? "warehouse" : ""}` },
    makeSvg("title", {}, [node.full ?? node.title, ...node.lines].join("\n")),
    makeSvg("rect", { x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1, rx: 8 }),
    makeSvg("text", { class: "kind", x: x + 10, y: y + 17 }, shorten(node.kind, letters)),
    makeSvg("text", { x: x + 10, y: y + 34 }, shorten(node.title, letters)), lines);
}

function drawEdge(from, to) {
  const [startX, startY] = [from.x + from.width, from.y + Math.min(from.height / 2, 30)];
  const [endX, endY] = [to.x, to.y + Math.min(to.height / 2, 30)];
  const middle = (startX + endX) / 2;
  return makeSvg("path", { d: `M${startX} ${startY}C${middle} ${startY} ${middle} ${endY} ${endX} ${endY}` });
}

function drawDiagram(declared) {
  const { places, height } = placeNodes(listNodes(declared));
  const edges = listEdges(declared).filter(([from, to]) => places.has(from) && places.has(to));
  return makeSvg("svg", { viewBox: `0 0 962 ${height}`, "aria-hidden": "true" },
    COLUMNS.map(({ title, x }) => makeSvg("text", { class: "kind", x, y: 14 }, title)),
    edges.map(([from, to]) => drawEdge(places.get(from), places.get(to))),
    [...places.values()].map(drawNode));
}

/** Return the same as text: the list for narrow screens and for readers of the screen. */
function makeTree(declared) {
  const item = (kind, name, below) => make("li", {}, make("span", { class: "muted" }, `${kind} `), name, below);
  const warehouses = (storage) => declared.warehouses.filter((warehouse) => warehouse.storage === storage).map((warehouse) =>
    item("warehouse", warehouse.name, make("ul", {},
      warehouse.role && item("role", warehouse.role), item("prefix", warehouse.key_prefix),
      warehouse.namespaces.map((name) => item("namespace", name)),
      declared.units.filter((unit) => unit.warehouses.includes(warehouse.name)).map((unit) => item("unit", unit.name)))));
  return make("ul", { class: "tree" }, declared.buckets.map((bucket) => {
    const below = warehouses(bucket.storage);
    return item("bucket", bucket.bucket || bucket.storage, below.length ? make("ul", {}, below) : null);
  }));
}

function makeDiagram(declared) {
  return make("div", { class: "diagram" }, drawDiagram(declared), makeTree(declared));
}
