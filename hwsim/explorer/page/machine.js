// The machine as a picture: boxes and lines where hwsim's own layout puts them; links as wide as they are fast, glowing as busy as they are.
import { fitted } from "./paper.js";
import { el, percent } from "./words.js";

const INCH = 96, TINTS = { cpu: 4, gpu: 0, switch: 7, nic: 3, disk: 2 };
const LABELLED = 8; // lines whose rates stand beside them; of more, only a pointer tells
const BELOW = 15; // from a rate to how busy it is, which stands below it: beside it, words of neighbours meet

function make(tag, more, ...inner) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

let drawn = { place: null, picture: null };

/** Draw the picture anew; `glow` then paints how busy everything is. */
export function drawMachine(place, picture) {
  drawn = { place, picture };
  if (!picture.boxes.length) return place.replaceChildren(el("p", { className: "soft" }, "This machine is too large to draw."));
  const boxes = new Map(picture.boxes.map((box) => [box.id, scaled(box)])), all = [...boxes.values()], words = picture.lines.length <= LABELLED;
  const frames = (picture.frames || []).map((each) => ({ label: each.label, x: each.x * INCH, y: each.y * INCH, width: each.width * INCH, height: each.height * INCH }));
  const low = Math.min(...all.map((box) => box.x - box.wide / 2), ...frames.map((each) => each.x)) - (words ? 100 : 20);
  const right = Math.max(...all.map((box) => box.x + box.wide / 2), ...frames.map((each) => each.x + each.width)) + (words ? 170 : 20);
  const top = Math.min(...all.map((box) => box.y - box.high / 2), ...frames.map((each) => each.y)) - (picture.lines.some((line) => line.a === line.b) ? 60 : 26 + BELOW);
  const deepest = picture.lines.filter((line) => line.shape === "arc").map((line) => boxes.get(line.a).y + line.depth * INCH);
  const bottom = Math.max(...all.map((box) => box.y + box.high / 2), ...frames.map((each) => each.y + each.height), ...deepest) + 22 + BELOW;
  const svg = make("svg", { viewBox: `${low} ${top} ${right - low} ${bottom - top}`, role: "img" });
  svg.style.minWidth = `${Math.min(right - low, 1800) * (words ? 0.75 : 0.6)}px`;
  svg.style.maxWidth = `${(right - low) * 1.1}px`;
  const fastest = Math.max(...picture.lines.map((line) => line.bandwidth || 0), 1), crowd = picture.round ? Math.min(1, 40 / picture.lines.length) : 1;
  const back = make("g", {}), glows = make("g", {}), front = make("g", {});
  for (const { label, ...frame } of frames) back.append(make("rect", { ...frame, rx: 12, class: "machine-frame" }), make("text", { x: frame.x + 12, y: frame.y + frame.height - 10, class: "rate" }, label));
  for (const line of picture.lines) {
    const { path, label } = way(line, boxes, picture), width = Math.max(0.5, (1.5 + 3.5 * Math.sqrt((line.bandwidth || 0) / fastest)) * crowd);
    glows.append(make("path", { d: path, "data-id": line.id, "data-width": width, class: "glow", "stroke-width": 0, "stroke-opacity": 0 }));
    front.append(make("path", { d: path, "data-line": line.id, class: "line", "stroke-width": width }, make("title", {}, `${line.what}, ${line.rate}`)));
    if (words) front.append(make("text", { ...label, class: "rate", "data-rate": line.id }, make("tspan", { x: label.x }, line.rate), make("tspan", { x: label.x, dy: BELOW })));
  }
  for (const box of picture.boxes) {
    const { x, y, wide, high } = boxes.get(box.id), at = { x: x - wide / 2, y: y - high / 2, height: high, rx: 6 }, tint = `var(--c${TINTS[box.kind] ?? 6})`;
    front.append(make("rect", { ...at, width: wide, class: "back" }), make("rect", { ...at, width: 0, class: "busy", "data-busy": box.id, "data-wide": wide, fill: tint }));
    front.append(make("rect", { ...at, width: wide, class: "frame", stroke: tint }, make("title", { "data-box": box.id }, box.label)), make("text", { x, y: y + 4, "text-anchor": "middle", class: "name", "font-size": Math.max(9, Math.min(15.5, (wide - 8) / (0.6 * Math.max(1, box.label.length)))) }, fitted(box.label, wide - 4, 9.6)));
  }
  svg.append(back, glows, front);
  place.replaceChildren(svg);
}

function scaled({ x, y, width, height, label }) {
  return { x: x * INCH, y: y * INCH, wide: width * INCH, high: (label ? height || 0.42 : width) * INCH };
}

/** The way of a line, and where its words stand. */
function way(line, boxes, picture) {
  const a = boxes.get(line.a), b = boxes.get(line.b);
  if (line.shape === "stub") return { path: `M${a.x} ${a.y}V${a.y - 0.55 * INCH}`, label: { x: a.x + 8, y: a.y - 0.45 * INCH } };
  if (line.shape === "arc") {
    const low = Math.max(a.y, b.y) + 0.21 * INCH + ((line.depth - 0.21) * INCH * 4) / 3, [from, to] = feet(line, boxes, picture);
    return { path: `M${from} ${a.y}C${from} ${low} ${to} ${low} ${to} ${b.y}`, label: { x: (from + to) / 2, y: Math.max(a.y, b.y) + line.depth * INCH + 14, "text-anchor": "middle" } };
  }
  if (picture.round || line.shape === "straight") return { path: `M${a.x} ${a.y}L${b.x} ${b.y}`, label: { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - BELOW - (isCramped(line, a, b) ? a.high / 2 + 7 : 8), "text-anchor": "middle" } };
  const [from, to] = upright(a, b), path = `M${from} ${a.y}L${to} ${b.y}`, many = (id) => picture.lines.filter((each) => each.a === id || each.b === id).length, ends = [many(line.a), many(line.b)];
  if (Math.min(...ends) > 1 || Math.max(...ends) < 3) return { path, label: { x: (from + to) / 2 + 10, y: (a.y + b.y) / 2 - 3 } };
  const [leaf, hub] = ends[0] === 1 ? [a, b] : [b, a]; // lines come together at the hub: words stand beyond the leaf, where there is room
  return { path, label: { x: leaf.x, y: leaf.y > hub.y ? leaf.y + leaf.high / 2 + 16 : leaf.y - leaf.high / 2 - 6 - BELOW, "text-anchor": "middle" } };
}

/** Whether the words of a level line have no room between its boxes: they stand above these. */
const isCramped = (line, a, b) => a.y === b.y && Math.abs(a.x - b.x) - (a.wide + b.wide) / 2 < Math.max(line.rate.length, 10) * 7.5;

/** Ends of a line between two rows: straight down where one box is above the other. */
function upright(a, b) {
  const low = Math.max(a.x - a.wide / 2, b.x - b.wide / 2) + 9, high = Math.min(a.x + a.wide / 2, b.x + b.wide / 2) - 9, within = (x, box) => Math.min(Math.max(x, box.x - box.wide / 2 + 9), box.x + box.wide / 2 - 9);
  if (low > high) return [within(b.x, a), within(a.x, b)];
  const x = Math.min(Math.max((a.wide <= b.wide ? a : b).x, low), high);
  return [x, x];
}

/** Ends of an arc along its boxes: short arcs are outside, so that no two arcs of a box cross. */
function feet(line, boxes, picture) {
  const arcs = picture.lines.filter((each) => each.shape === "arc");
  const foot = (own, far) => {
    const box = boxes.get(own), mates = arcs.filter((each) => each.a === own || each.b === own).map((each) => boxes.get(each.a === own ? each.b : each.a).x), reached = [...new Set(mates)];
    const order = [...reached.filter((x) => x < box.x).sort((one, other) => other - one), ...reached.filter((x) => x > box.x).sort((one, other) => other - one)];
    return box.x - box.wide / 2 + 6 + ((box.wide - 12) / order.length) * (order.indexOf(boxes.get(far).x) + 0.5);
  };
  return [foot(line.a, line.b), foot(line.b, line.a)];
}

/** Paint how busy each link and box is: shares by the picture's ids; nothing where the answer is hidden. */
export function glow(busy, hidden) {
  const svg = drawn.place?.querySelector("svg");
  if (!svg) return;
  const share = (id) => (hidden ? 0 : Math.min(1, busy[id] || 0)), said = (id) => (share(id) > 0.005 ? `, ${percent(share(id))} busy` : "");
  const lines = new Map(drawn.picture.lines.map((line) => [line.id, line])), labels = new Map(drawn.picture.boxes.map((box) => [box.id, box.label]));
  for (const line of svg.querySelectorAll(".glow")) {
    const used = share(line.dataset.id);
    line.setAttribute("stroke-width", used > 0.005 ? Number(line.dataset.width) + 4 + 12 * used : 0);
    line.setAttribute("stroke-opacity", used > 0.005 ? 0.25 + 0.6 * used : 0);
  }
  for (const text of svg.querySelectorAll("[data-rate]")) text.lastChild.textContent = said(text.dataset.rate).replace(", ", "");
  for (const rect of svg.querySelectorAll("[data-busy]")) rect.setAttribute("width", share(rect.dataset.busy) * rect.dataset.wide);
  for (const title of svg.querySelectorAll("[data-box]")) title.textContent = labels.get(title.dataset.box) + said(title.dataset.box);
  for (const line of svg.querySelectorAll("[data-line]")) line.firstChild.textContent = `${lines.get(line.dataset.line).what}, ${lines.get(line.dataset.line).rate} each way${said(line.dataset.line)}`;
  const busiest = [...[...lines.values()].map((line) => [line.id, `${line.what} from ${labels.get(line.a)} to ${labels.get(line.b)}`]), ...labels].filter(([id]) => share(id) > 0.005);
  svg.setAttribute("aria-label", [`${labels.size} parts and ${lines.size} links`, ...busiest.slice(0, 40).map(([id, name]) => name + said(id))].join("; "));
}

/** The picture as SVG text of its own, colours put in, at (x, y) and at most `wide`; and its height. */
export function picturePart(x, y, wide) {
  const svg = drawn.place?.querySelector("svg");
  if (!svg) return { text: "", high: 0 };
  const copy = svg.cloneNode(true), [, , w, h] = svg.getAttribute("viewBox").split(" ").map(Number), shown = Math.min(wide, w * 1.1), high = (shown / w) * h;
  copy.removeAttribute("style");
  for (const [key, value] of Object.entries({ x: x + (wide - shown) / 2, y, width: shown, height: high })) copy.setAttribute(key, value);
  const real = svg.querySelectorAll("path, rect, text"), keys = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "font-size"];
  copy.querySelectorAll("path, rect, text").forEach((each, at) => {
    const css = getComputedStyle(real[at]);
    for (const key of keys) each.setAttribute(key, each.classList.contains("glow") && each.hasAttribute(key) ? each.getAttribute(key) : css.getPropertyValue(key));
  });
  return { text: new XMLSerializer().serializeToString(copy), high };
}
