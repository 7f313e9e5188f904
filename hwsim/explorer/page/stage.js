// A scene at an instant: the data that `hwsim simulate --animate` draws, drawn on the canvas. Nothing here knows what it shows.
import { CanvasPaper, fitted } from "./paper.js";

const PALE = 0.25;

/** Where a token is at a part of the scene's time: [x, y], or null where it is not there. */
function place([at, xs, ys], part) {
  const last = at.length - 1;
  if (part < at[0] || part > at[last]) return null;
  let low = 0, top = last;
  while (low < top) {
    const middle = (low + top + 1) >> 1;
    if (at[middle] <= part) low = middle;
    else top = middle - 1;
  }
  const long = low < last ? at[low + 1] - at[low] : 0, gone = long > 0 ? (part - at[low]) / long : 0, next = Math.min(low + 1, last);
  return [xs[low] + gone * (xs[next] - xs[low]), ys[low] + gone * (ys[next] - ys[low])];
}

/** How many tokens are there, and how many of them are worked on. */
export function present(scene, part) {
  const there = scene.tokens.filter((token) => place(token, part)), worked = there.filter(([, , , , , , [from, to]]) => from <= part && part < to);
  return [there.length, worked.length];
}

/** The instants at which something begins, turns or ends, as parts of the scene's time, in order. */
export function events(scene) {
  const all = scene.tokens.flatMap(([at, , , , , , busy]) => [at[0], at.at(-1), ...busy]).filter((part) => part >= 0 && part <= 1);
  return [...new Set([0, ...all, 1])].sort((one, other) => one - other).filter((part, at, list) => at === 0 || part - list[at - 1] > 1e-6);
}

/** Draw the scene at `part` (0 to 1) of its time. */
export function draw(canvas, scene, part, theme) {
  const [wide, high, top, foot] = scene.size, tint = (colour) => theme.tints[Math.min(7, scene.tints[colour] ?? colour)], card = theme.of("card");
  const paper = new CanvasPaper(canvas, wide, high - top + 16, theme, (canvas.clientWidth / wide) * (devicePixelRatio || 1)), frames = [];
  paper.context.translate(0, 16 - top);
  paper.lines(scene.ways, theme.of("line"));
  for (const [x, y, w, h, name, colour] of scene.boxes) {
    if (colour < 0) frames.push(outline(x, y, w, h));
    else paper.rects([x, y, w, h], tint(colour));
    if (name) paper.text(x + w / 2, y + h / 2, name, { align: "center", size: 13 });
  }
  paper.lines(frames, theme.of("line"), 1.5);
  const filled = new Map(), pale = new Map(), edges = new Map(), names = [];
  for (const token of scene.tokens) {
    const there = place(token, part), [, , , w, h, colour, [from, to], name, grows] = token;
    if (!there) continue;
    const long = grows && from <= token[0][0] ? w * Math.min(1, (part - from) / (to - from || 1)) : w, isFilled = (from <= part && part < to) || (grows && to <= part);
    const list = isFilled ? filled : pale;
    if (!list.has(colour)) list.set(colour, []);
    list.get(colour).push(...there, Math.max(0, long), h);
    if (!edges.has(colour)) edges.set(colour, []);
    if (!grows || !isFilled) edges.get(colour).push(outline(...there, Math.max(0, long), h));
    if (name) names.push([there[0] + w / 2, there[1] + h / 2, name]);
  }
  for (const list of [...filled.values(), ...pale.values()]) paper.rects(list, card);
  for (const [colour, list] of filled) paper.rects(list, tint(colour));
  for (const [colour, list] of pale) paper.rects(list, tint(colour), PALE);
  for (const [colour, list] of edges) paper.lines(list, tint(colour));
  for (const [x, y, name] of names) paper.text(x, y, name, { align: "center", size: 11 });
  for (const [x, y, text, size, anchor, soft] of scene.words)
    paper.text(x, y - size * 0.35, fitted(text, wide, size), { size, align: { start: "left", middle: "center", end: "right" }[anchor], fill: soft ? theme.of("soft") : "" });
  paper.lines([[14, foot + 4, wide - 14, foot + 4]], theme.of("soft"));
  for (const [x, text] of scene.marks) paper.text(x, foot + 18, text, { align: "center", size: 12 });
  paper.dot(14 + part * (wide - 28), foot + 4, 5, theme.of("ink"));
}

const outline = (x, y, w, h) => [x, y, x + w, y, x + w, y + h, x, y + h, x, y];
