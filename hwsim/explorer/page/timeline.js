// The timeline: a row for each lane, waiting hatched, the critical path as a line through it, a pinned run as thin rows.
import { fitted, ink } from "./paper.js";
import { instant, instants } from "./words.js";

export const TICKS = 1e6;
const TEXT = 14;
const MANY = 60, APART = 40; // lines from row to row that are all drawn; pixels between two of more

const label = (lane) => (lane.times > 1 ? `${lane.name} × ${lane.times}` : lane.name);
const time = (run, tick) => run.part[0] + (tick / TICKS) * (run.part[1] - run.part[0]);

/** Where everything of a run stands on a picture of this width, and of the run pinned beside it. */
export function laidOut(run, pinned, wide) {
  const narrow = wide < 560, lanes = run.lanes.map((lane) => ({ lane, name: label(lane) }));
  const before = new Map((pinned?.lanes || []).map((lane) => [lane.name, lane]));
  for (const each of lanes) {
    each.pinned = before.get(each.lane.name);
    before.delete(each.lane.name);
  }
  for (const lane of before.values()) lanes.push({ lane: null, name: label(lane), pinned: lane });
  const thick = Math.max(14, Math.min(32, 330 / Math.max(lanes.length, 1))), under = pinned ? Math.max(5, thick * 0.3) + 2 : 0;
  const above = narrow ? 19 : 4, high = above + thick + 7 + under;
  const left = narrow ? 4 : Math.min(230, 22 + 7.9 * Math.max(6, ...lanes.map((each) => each.name.length))), right = wide - 14;
  const whole = run.part[0] <= 0 && run.part[1] >= run.seconds * 0.999999;
  const from = run.part[0], to = whole && pinned ? Math.max(run.seconds, pinned.seconds) : run.part[1];
  const x = (at) => left + ((at - from) / (to - from || 1)) * (right - left);
  lanes.forEach((each, row) => Object.assign(each, { top: row * high + above + 2 }));
  return { run, pinned, lanes, wide, tall: Math.max(lanes.length * high, 40) + 34, high, above, thick, under, left, right, narrow, from, to, x };
}

/** Draw it; `hidden`: only what does not tell the answer. */
export function draw(paper, place, { step = -1, hidden = false, theme }) {
  const { run, lanes, left, right, thick, narrow, tall, x } = place;
  const many = Math.max(2, Math.floor((right - left) / 95)), bottom = tall - 28;
  for (const at of hidden || !lanes.length ? [] : instants(place.from, place.to, many)) {
    const px = Math.round(x(at)) + 0.5;
    paper.lines([[px, 0, px, bottom]], theme.of("line"));
    const align = px > right - 24 ? "right" : px < 24 ? "left" : "center";
    paper.text(align === "right" ? right + 10 : align === "left" ? Math.max(px, 6) : px, bottom + 14, instant(at, place.to), { fill: theme.of("soft"), align, size: 13 });
  }
  if (!lanes.length) paper.text((left + right) / 2, 26, run.note || (!run.measure ? "No op takes time." : narrow ? "Requests are not drawn." : "Requests of a service are not drawn one by one."), { fill: theme.of("soft"), align: "center" });
  for (const { name, top } of lanes) {
    if (narrow) paper.text(left + 2, top - 9, fitted(name, right - left), { size: 13 });
    else paper.text(left - 10, top + thick / 2, fitted(name, left - 14), { align: "right", size: TEXT });
  }
  if (hidden) {
    paper.text((left + right) / 2, bottom + 14, "hidden until you reveal it", { fill: theme.of("soft"), align: "center", size: 13 });
    return;
  }
  for (const each of lanes) {
    if (each.lane) spans(paper, place, each, theme);
    if (each.pinned) thin(paper, place, each, theme);
  }
  path(paper, place, theme);
  const piece = run.path[step], at = piece && box(place, piece);
  if (at) for (const [shade, width] of [[theme.of("card"), 6], [theme.of("glow"), 3]]) paper.lines([outline(...at)], shade, width);
}

/** The rectangles of a lane, one list for each colour, and the hatched ones. */
function spans(paper, { run, x, thick }, { lane, top }, theme) {
  const lists = theme.tints.map(() => []), pale = theme.tints.map(() => []), hatched = [], words = [];
  for (let at = 0; at < lane.at.length; at++) {
    const begin = x(time(run, lane.at[at])), end = x(time(run, lane.at[at] + lane.long[at])), tint = run.tints[lane.name_of[at]];
    const wide = Math.max(1, end - begin - (end - begin > 5 ? 1 : 0)), full = (lane.full?.[at] ?? 100) / 100;
    const high = Math.max(2, thick * full), from = top + thick - high; // as high as it is busy: neighbours drawn as one leave gaps
    lists[tint].push(begin, from, wide, high);
    if (full < 1) pale[tint].push(begin, top, wide, thick);
    const waits = lane.wait?.[at] || 0, inside = lane.inside?.[at] || 0;
    if (waits) hatched.push(begin, top, Math.min(wide, x(time(run, lane.at[at] + waits)) - begin), thick);
    if (inside) {
      const long = Math.min(wide, x(time(run, lane.at[at] + inside)) - begin);
      hatched.push(begin + wide - long, from, long, high);
    }
    if (wide > 14 && thick >= 14 && words.length < 200) words.push([begin + 6, named(run.names[lane.name_of[at]], wide - 9), full < 0.5 ? "" : ink(theme.tints[tint])]);
  }
  pale.forEach((list, tint) => list.length && paper.rects(list, theme.tints[tint], 0.2));
  lists.forEach((list, tint) => list.length && paper.rects(list, theme.tints[tint]));
  if (hatched.length) paper.hatch(hatched, theme.of("card"));
  for (const [px, text, fill] of words) if (text) paper.text(px, top + thick / 2, text, { fill, size: Math.min(TEXT, thick - 2) });
}

/** A name cut to its room; nothing where only a few letters would be left. */
function named(name, room) {
  const cut = fitted(name, room);
  return cut === name || cut.length > 5 ? cut : "";
}

/** The pinned run's row, on the scale of this one. */
function thin(paper, { pinned, x, thick, under, left, right }, { pinned: lane, top }, theme) {
  const lists = theme.tints.map(() => []);
  for (let at = 0; at < lane.at.length; at++) {
    const begin = Math.max(left, x(time(pinned, lane.at[at]))), end = Math.min(right, x(time(pinned, lane.at[at] + lane.long[at])));
    if (end >= begin) lists[pinned.tints[lane.name_of[at]]].push(begin, top + thick + 8, Math.max(1, end - begin - (end - begin > 5 ? 1 : 0)), under - 2);
  }
  lists.forEach((list, tint) => list.length && paper.rects(list, theme.tints[tint], 0.6));
}

/** Each run of pieces in one lane as [from, to, lane]: pieces that touch on the picture are one. */
function joined(run, x) {
  const found = [];
  for (const [at, to, lane] of run.path) {
    const begin = x((at / TICKS) * run.seconds), end = x((to / TICKS) * run.seconds), last = found.at(-1);
    if (last && last[2] === lane && begin - last[1] < 2) last[1] = Math.max(last[1], end);
    else found.push([begin, end, lane]);
  }
  return found;
}

/** The critical path: a line below the spans on it, from lane to lane. */
function path(paper, { run, lanes, thick, x, left, right }, theme) {
  const y = (lane) => lanes[lane].top + thick + 3.5, level = [], across = [];
  let before = null;
  for (const [begin, end, lane] of joined(run, x)) {
    if (end < left - 1 || begin > right + 1 || lane < 0 || !lanes[lane]) {
      before = null;
      continue;
    }
    const from = Math.max(begin, left), to = Math.min(Math.max(end, begin + 2), right);
    if (before && before[1] !== lane && begin - before[0] < 40) across.push([from, y(before[1]), from, y(lane)]);
    level.push([from, y(lane), to, y(lane)]);
    before = [end, lane];
  }
  let last = -Infinity;
  const apart = across.length <= MANY ? across : across.filter(([at]) => at - last >= APART && ((last = at), true)); // many would be a wall before the rows
  paper.lines(apart, theme.of("card"), 5);
  paper.lines(apart, theme.of("path"), 2);
  paper.lines(level, theme.of("path"), 4);
}

const outline = (left, top, wide, high) => [left, top, left + wide, top, left + wide, top + high, left, top + high, left, top - 1];

/** Where a piece of the path stands: [x, y, width, height], or null where it is out of sight. */
export function box({ run, lanes, thick, x, left, right }, piece) {
  const begin = x((piece[0] / TICKS) * run.seconds), end = x((piece[1] / TICKS) * run.seconds);
  if (piece[2] < 0 || !lanes[piece[2]] || end < left - 1 || begin > right + 1) return null;
  const from = Math.max(begin, left - 2);
  return [from, lanes[piece[2]].top - 1, Math.max(4, Math.min(end, right + 2) - from), thick + 2];
}

/** The span at a point of the picture: lane, name, times, op; null where there is none. */
export function spanAt({ run, lanes, high, above, x, left }, px, py) {
  const each = lanes[Math.floor(py / high)], lane = each?.lane;
  if (!lane || !lane.at.length || px < left - 2 || (py % high) < above - 4) return null;
  let low = 0, top = lane.at.length - 1;
  while (low < top) {
    const middle = (low + top + 1) >> 1;
    if (x(time(run, lane.at[middle])) <= px + 2) low = middle;
    else top = middle - 1;
  }
  const start = time(run, lane.at[low]), end = time(run, lane.at[low] + lane.long[low]);
  if (px < x(start) - 2 || px > x(end) + 2) return null;
  const waits = ((lane.wait?.[low] || 0) + (lane.inside?.[low] || 0)) / TICKS * (run.part[1] - run.part[0]);
  return { lane: each.name, name: run.names[lane.name_of[low]], start, end, waits, op: lane.op[low], whole: lane.whole, full: lane.full?.[low] ?? 100 };
}
