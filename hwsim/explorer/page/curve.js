// The time over one number: where the run stands on it and who sets the pace along it.
import { ask } from "./asking.js";
import { asked, state } from "./state.js";
import { find, position, sliders, strongest } from "./sliders.js";
import { CanvasPaper, fitted } from "./paper.js";
import { $, amount, colours, instant, instants } from "./words.js";

export const HIGH = 210, ABOVE = 22, BELOW = 30;
const MANY = 11;
let curve = null, token = 0, hidden = false;

/** The slider whose curve is shown: the one in the address, else the first that is turned, else the one with the strongest effect,
 * else the first rate or time of the files. */
export const shownSlider = () =>
  find(state.curve) || sliders().find((one) => one.path in state.set) || strongest() || sliders().find((one) => one.kind === "quantity" && one.group !== "parts" && !/B$/.test(one.unit)) || sliders()[0];
export const shownCurve = () => curve;

/** The positions asked for: ends, the file's own, where it stands, others evenly between. */
function positions(one) {
  const last = one.values.length - 1, found = new Set([0, last, one.at, Math.max(0, position(one))]);
  for (let step = 0; step < MANY; step++) found.add(Math.round((step / (MANY - 1)) * last));
  return [...found].sort((left, right) => left - right);
}

/** Ask for the curve, a piece at a time; a newer call ends this one, and so does a run: `may()` is false while one is under way.
 * `measure`: the number of a service that takes the time's place, or null. */
export async function sweep(may, measure) {
  const mine = ++token, one = shownSlider();
  if (!one) return;
  const places = positions(one), points = new Map();
  let left = places.map((each) => one.values[each]);
  while (left.length) {
    const found = await ask("curve", { ...asked(), path: one.path, values: left }).catch(() => null);
    if (mine !== token || !found || found.stale || found.mistakes || !may()) return;
    for (const [text, time, limit, number] of found.points) points.set(text, time === null ? [null, "cannot run"] : !measure ? [time, limit] : measured(number, measure));
    const done = !found.left.length || found.left.length >= left.length;
    left = done ? [] : found.left;
    if (done || !curve?.whole || curve.one.path !== one.path) {
      curve = { whole: done, one, measure, points: places.filter((each) => points.has(one.values[each])).map((each) => [each, ...points.get(one.values[each])]) };
      draw(hidden);
    }
  }
}

/** A served model that requests keep busy is measured by its tokens a second: no point of a curve of times, only a name above it. */
function measured(number, { name }) {
  if (number?.name === name && number.value !== null) return [number.value, ""];
  return [null, number && number.name !== name ? number.name : "no steady state"];
}

/** The present curve is of another run: it is drawn pale until the new one comes. */
export function outdated() {
  token += 1;
  $("curve").classList.toggle("old", curve !== null);
}

/** Where a slider's positions stand on the horizontal axis: by their numbers, so that a straight line is drawn straight; with a
 * guess, whose vertical axis is logarithmic, by their logarithms; by position where the values are no increasing numbers. */
function along({ numbers }, left, right) {
  const places = isLogarithmic(numbers) ? numbers.map(Math.log2) : numbers, first = places[0], span = places.at(-1) - first;
  const rises = places.every((number, at) => Number.isFinite(number) && (!at || number > places[at - 1]));
  return (at) => left + (rises ? (places[at] - first) / span : at / Math.max(1, places.length - 1)) * (right - left);
}
/** Whether times are drawn as multiples: while a curve is to be drawn, and beside one. */
const isGuessed = () => Boolean(state.guess && (hidden || state.guess.curve));
const isLogarithmic = (numbers) => isGuessed() && numbers.every((number) => number > 0);

/** Where values and times stand; with a guess, times are multiples of the time at the file's own value, so that no time is told. */
export function scale() {
  const { one, points, measure } = curve, wide = $("curve").clientWidth, left = 60, said = (number) => amount(number, measure?.unit ?? "s");
  const right = wide - 16, bottom = HIGH - BELOW;
  const x = along(one, left, right), known = points.filter(([, time]) => time);
  if (!isGuessed()) {
    const most = Math.max(...known.map(([, time]) => time), 0) * 1.08 || 1;
    const ticks = measure && measure.unit !== "s" ? instants(0, most, 4, 1).map((each) => [each, each.toLocaleString("en", { maximumSignificantDigits: 6 })]) : instants(0, most, 4).map((each) => [each, instant(each, most)]);
    return { x, left, right, bottom, ticks, y: (time) => bottom - (time / most) * (bottom - ABOVE) };
  }
  const base = (known.find(([each]) => each === one.at) || known[0] || [0, 1])[1];
  const off = hidden ? [] : [...known.map(([, time]) => time / base), ...(state.guess.curve?.points || []).map(([, log]) => 2 ** log)].map((each) => Math.abs(Math.log2(each)));
  const most = Math.max(2, Math.ceil(Math.max(guessed(one), ...off))), half = (bottom - ABOVE) / 2;
  const ticks = [-1, -0.5, 0, 0.5, 1].map((part) => [base * 2 ** (part * most), hidden ? multiple(part * most) : said(base * 2 ** (part * most))]);
  return { x, left, right, bottom, base, most, ticks, y: (time) => bottom - half * (Math.log2(time / base) / most + 1) };
}

/** How many times doubled or halved a guess may be: half the width of the slider, whatever the answer is. */
const guessed = ({ numbers }) => Math.min(6, Math.log2(Math.max(...numbers) / Math.max(Math.min(...numbers.filter((each) => each > 0)), 1e-300)) / 2 || 2);
const multiple = (log) => (log === 0 ? "1 ×" : `${log < 0 ? "÷" : "×"} ${Math.round(2 ** Math.abs(log) * 10) / 10}`);

/** Draw it; `isHidden`: only the axes and what was guessed. `mark`: the position that a key moves. */
export function draw(isHidden, mark = -1) {
  hidden = isHidden;
  const canvas = $("curve"), wide = canvas.clientWidth, theme = colours();
  if (!curve || curve.points.length < 2 || !wide) return;
  const paper = new CanvasPaper(canvas, wide, HIGH, theme), { one, points, measure } = curve, what = measure?.name.replace(/^\w/, (each) => each.toUpperCase()) ?? "Time", { x, y, left, right, bottom, ticks, base } = scale();
  canvas.classList.remove("old");
  $("curve-title").textContent = `${what} by ${one.label}${one.unit ? ` (${one.unit})` : ""}${isGuessed() ? (isLogarithmic(one.numbers) ? ", logarithmic axes" : ", logarithmic vertical axis") : ""}`;
  $("curve-hint").textContent = hidden ? `Draw the curve that you expect with the pointer or the arrow keys, relative to the value at ${one.values[one.at]}.` : drawnFor(one) ? "Dashed: your guess." : "";
  for (const [time, name] of ticks) {
    paper.lines([[left, y(time), right, y(time)]], theme.of("line"));
    paper.text(left - 8, y(time), name, { fill: theme.of("soft"), align: "right", size: 12 });
  }
  axis(paper, theme, one, x, bottom);
  const own = points.filter(([, time]) => time !== null);
  if (!hidden) {
    $("curve-hint").textContent = [$("curve-hint").textContent, bands(paper, theme, points, x, bottom)].filter(Boolean).join(" ");
    paper.lines([own.flatMap(([each, time]) => [x(each), y(time)])], theme.of("strong"), 3);
    for (const [each, time] of own) paper.dot(x(each), y(time), 3.5, theme.of("strong"));
    const now = own.find(([each]) => each === position(one));
    if (now) (paper.dot(x(now[0]), y(now[1]), 8, theme.of("card")), paper.dot(x(now[0]), y(now[1]), 6, theme.of("glow")));
  }
  const drawn = drawnFor(one) ? state.guess.curve.points.map(([each, log]) => [x(each), y(base * 2 ** log)]) : [];
  paper.lines([drawn.flat()].filter((line) => line.length), theme.of("c5"), 3, [7, 5]);
  for (const [px, py] of drawn) paper.dot(px, py, 4.5, theme.of("c5"));
  if (hidden && mark >= 0) paper.lines([[x(mark), ABOVE, x(mark), bottom]], theme.of("glow"), 2);
  const said = hidden ? "hidden; draw your expectation" : own.map(([each, time]) => `${one.values[each]}: ${amount(time, measure?.unit ?? "s")}`).join("; ");
  canvas.setAttribute("aria-label", `${what} by ${one.label}: ${said}`);
}

/** Stretches of the curve with one pace setter each: [from, to, name] in points. */
function stretches(points) {
  const found = [];
  for (const [at, [, , name]] of points.entries())
    if (found.length && found.at(-1)[2] === name) found.at(-1)[1] = at;
    else found.push([at, at, name]);
  return found;
}

/** Who sets the pace: the name above each stretch, a dashed line where another takes over. Where a name has no room, letters
 * stand there, and what they mean below the curve: the words that come back. */
function bands(paper, theme, points, x, bottom) {
  const edge = (at) => (at <= 0 ? x(points[0][0]) : at >= points.length ? x(points.at(-1)[0]) : (x(points[at - 1][0]) + x(points[at][0])) / 2);
  const found = stretches(points).map(([from, to, name]) => ({ name: name || "", left: edge(from), room: edge(to + 1) - edge(from) }));
  const lettered = found.some(({ name, room }) => fitted(name, room - 8, 12) !== name), names = [...new Set(found.map(({ name }) => name))], letter = (name) => String.fromCharCode(65 + (names.indexOf(name) % 26));
  for (const [at, { name, left, room }] of found.entries()) {
    if (at) paper.lines([[left, 2, left, bottom]], theme.of("soft"), 1, [3, 4]);
    if (room > 9 && name) paper.text(left + (at ? 4 : 0), 9, lettered ? letter(name) : name, { fill: theme.of("soft"), size: 12, weight: lettered ? 700 : 400 });
  }
  return lettered ? names.filter(Boolean).map((name) => `${letter(name)}: ${name}`).join("; ") : "";
}

const drawnFor = (one) => state.guess?.curve?.path === one.path;
/** A value without the unit, which stands in the title; a large number is written short: 260M. */
function plain(one, at) {
  const text = one.unit && one.values[at].endsWith(` ${one.unit}`) ? one.values[at].slice(0, -one.unit.length - 1) : one.values[at], number = Number(text);
  return Number.isFinite(number) && Math.abs(number) >= 1e4 ? number.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 }) : text;
}

function axis(paper, theme, one, x, bottom) {
  const last = one.values.length - 1, here = Math.max(0, position(one)), taken = [];
  paper.lines([[x(0), bottom, x(last), bottom]], theme.of("soft"));
  for (const each of new Set([here, 0, last, one.at, Math.round(last / 2)])) {
    const words = plain(one, each), room = words.length * 3.5 + 5, px = Math.max(room, Math.min(x(each), x(last) + 14 - room));
    if (taken.some(([place, half]) => Math.abs(place - px) < half + room)) continue;
    taken.push([px, room]);
    paper.text(px, bottom + 16, words, { align: "center", size: 12, fill: theme.of(each === here ? "ink" : "soft"), weight: each === here ? 600 : 400 });
  }
}
