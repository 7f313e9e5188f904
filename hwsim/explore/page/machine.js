// The machine as a picture: boxes where hwsim's own layout puts them; links as wide as they are fast, glowing as busy as they are.
import { percent } from "./words.js";

const INCH = 96, TINTS = { cpu: 4, gpu: 0, switch: 7, nic: 3, disk: 2 };

function make(tag, more, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

let drawn = { place: null, picture: null };

/** Draw the picture anew; `glow` then paints how busy everything is. */
export function drawMachine(place, picture) {
  drawn = { place, picture };
  if (!picture.boxes.length) return place.replaceChildren();
  const boxes = new Map(picture.boxes.map((box) => [box.id, scaled(box)])), all = [...boxes.values()];
  const low = Math.min(...all.map((box) => box.x - box.wide / 2)) - 70, right = Math.max(...all.map((box) => box.x + box.wide / 2)) + 70;
  const top = Math.min(...all.map((box) => box.y - box.high / 2)) - 16, bottom = Math.max(...all.map((box) => box.y + box.high / 2)) + (bends(picture, boxes) ? 44 : 16);
  const svg = make("svg", { viewBox: `${low} ${top} ${right - low} ${bottom - top}`, role: "img" });
  svg.style.minWidth = `${Math.min(right - low, 1600) * 0.72}px`;
  svg.style.maxWidth = `${(right - low) * 1.15}px`;
  const fastest = Math.max(...picture.lines.map((line) => line.bandwidth || 0), 1), glows = make("g", {}), front = make("g", {});
  for (const line of picture.lines) {
    const from = boxes.get(line.a), to = boxes.get(line.b);
    if (!from || !to || from === to) continue;
    const { path, label } = way(from, to), width = 1.5 + 3.5 * Math.sqrt((line.bandwidth || 0) / fastest);
    glows.append(make("path", { d: path, "data-id": line.id, "data-width": width, class: "glow", "stroke-width": width }));
    const shown = make("path", { d: path, "data-line": line.id, class: "line", "stroke-width": width });
    shown.append(make("title", {}, `${line.what}, ${line.rate}`));
    front.append(shown);
    if (picture.lines.length <= 8) front.append(make("text", { ...label, class: "rate", "data-rate": line.id, "data-words": line.rate }, line.rate));
  }
  for (const box of picture.boxes) {
    const { x, y, wide, high } = boxes.get(box.id), at = { x: x - wide / 2, y: y - high / 2, height: high, rx: 6 };
    front.append(make("rect", { ...at, width: wide, class: "back" }));
    front.append(make("rect", { ...at, width: 0, class: "busy", "data-busy": box.id, "data-wide": wide, fill: `var(--c${TINTS[box.kind] ?? 6})` }));
    front.append(make("rect", { ...at, width: wide, class: "frame", stroke: `var(--c${TINTS[box.kind] ?? 6})` }));
    front.append(make("text", { x, y: y + 4, "text-anchor": "middle" }, box.label));
  }
  svg.append(glows, front);
  place.replaceChildren(svg);
}

const scaled = (box) => ({ x: box.x * INCH, y: box.y * INCH, wide: Math.max(box.width * INCH, 7.4 * box.label.length + 14), high: Math.max((box.height || 0.36) * INCH, 32) });
const level = (from, to) => Math.abs(from.y - to.y) < 5;
const bends = (picture, boxes) => picture.lines.some((line) => boxes.get(line.a) && boxes.get(line.b) && level(boxes.get(line.a), boxes.get(line.b)));

/** The way of a line, and where its words stand. */
function way(from, to) {
  if (level(from, to)) {
    const y = from.y + from.high / 2, middle = (from.x + to.x) / 2;
    return { path: `M${from.x} ${y}Q${middle} ${y + 56} ${to.x} ${to.y + to.high / 2}`, label: { x: middle, y: y + 42, "text-anchor": "middle" } };
  }
  const upper = from.y < to.y ? from : to, lower = upper === from ? to : from, above = Math.abs(upper.x - lower.x) < upper.wide / 2 - 8 ? lower.x : upper.x;
  const top = upper.y + upper.high / 2, bottom = lower.y - lower.high / 2;
  return { path: `M${above} ${top}L${lower.x} ${bottom}`, label: { x: (above + lower.x) / 2 + 12, y: (top + bottom) / 2 + 4 } };
}

/** Paint how busy each link and box is: shares by the picture's ids; nothing where the answer is hidden. */
export function glow(busy, hidden) {
  const svg = drawn.place?.querySelector("svg");
  if (!svg) return;
  const share = (id) => (hidden ? 0 : Math.min(1, busy[id] || 0));
  for (const line of svg.querySelectorAll(".glow")) {
    const used = share(line.dataset.id);
    line.style.strokeWidth = used > 0.005 ? Number(line.dataset.width) + 4 + 12 * used : 0;
    line.style.strokeOpacity = used > 0.005 ? 0.2 + 0.6 * used : 0;
  }
  for (const text of svg.querySelectorAll("[data-rate]")) {
    const used = share(text.dataset.rate);
    text.textContent = text.dataset.words + (used > 0.005 ? `, ${percent(used)} busy` : "");
  }
  for (const rect of svg.querySelectorAll("[data-busy]")) rect.setAttribute("width", share(rect.dataset.busy) * rect.dataset.wide);
  const named = [...drawn.picture.lines.map((line) => [line.id, `${line.what} from ${line.a} to ${line.b}`]), ...drawn.picture.boxes.map((box) => [box.id, box.label])];
  const said = named.filter(([id]) => share(id) > 0.005).map(([id, name]) => `${name} ${percent(share(id))} busy`).slice(0, 40);
  svg.setAttribute("aria-label", `${drawn.picture.boxes.length} parts and ${drawn.picture.lines.length} links${said.length ? `; ${said.join(", ")}` : ""}`);
  for (const line of svg.querySelectorAll("[data-line]")) {
    const of = drawn.picture.lines.find((each) => each.id === line.dataset.line), used = share(of.id);
    line.firstChild.textContent = `${of.what}, ${of.rate}${used > 0.005 ? `, ${percent(used)} busy` : ""}`;
  }
}

/** The picture as SVG text of its own, colours put in, at (x, y) and as wide as `wide`; its height. */
export function picturePart(x, y, wide) {
  const svg = drawn.place?.querySelector("svg");
  if (!svg) return { text: "", high: 0 };
  const copy = svg.cloneNode(true), [, , w, h] = svg.getAttribute("viewBox").split(" ").map(Number), shown = Math.min(wide, w * 1.15), high = (shown / w) * h;
  copy.removeAttribute("style");
  for (const [key, value] of Object.entries({ x: x + (wide - shown) / 2, y, width: shown, height: high })) copy.setAttribute(key, value);
  const real = svg.querySelectorAll("path, rect, text"), keys = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "font-size"];
  copy.querySelectorAll("path, rect, text").forEach((each, at) => {
    const css = getComputedStyle(real[at]);
    for (const key of keys) each.setAttribute(key, css.getPropertyValue(key));
    each.removeAttribute("style");
  });
  return { text: new XMLSerializer().serializeToString(copy), high };
}
