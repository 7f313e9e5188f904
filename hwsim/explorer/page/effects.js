// How much each parameter moves the answer: the run with its value about doubled and about halved, asked while nobody waits.
import { ask } from "./asking.js";
import { asked } from "./state.js";

export const LEAST = 0.01; // relative change of the answer from which a parameter matters
const LONGEST = 8000; // milliseconds of asking after which the others stay in the order of the files
let effects = new Map(), spent = 0;

/** Forget the effects: the files have changed. */
export function forgetEffects() {
  effects = new Map();
  spent = 0;
}

/** The relative change of the answer by a slider: 0.5 for half as much again; undefined where it was not asked. */
export const effect = (path) => effects.get(path);

/** The positions at which the value is about doubled and about halved. */
function positions({ numbers, at }) {
  const own = numbers[at], near = (wanted) => numbers.reduce((best, number, place) => (place !== at && Math.abs(number - wanted) < Math.abs(numbers[best] - wanted) ? place : best), at ? 0 : numbers.length - 1);
  return [...new Set([near(2 * own), near(own / 2)])].filter((place) => place !== at);
}

const answerOf = ([, time, , number], measure) => (measure ? (number?.name === measure.name ? number.value : null) : time);

/** Ask for the effect of each slider that has none; `may()`: false once the run on the page is another. True once something is new. */
export async function weigh(sliders, measure, may) {
  let isNew = false;
  for (const one of sliders.filter(({ group, path }) => group !== "parts" && !effects.has(path))) {
    if (spent > LONGEST) break;
    const before = performance.now(), values = [one.values[one.at], ...positions(one).map((place) => one.values[place])];
    const found = await ask("curve", { ...asked(), path: one.path, values }).catch(() => null);
    if (!found || found.stale || found.mistakes || !may()) return isNew;
    spent += performance.now() - before;
    const [base, ...answers] = found.points.map((point) => answerOf(point, measure));
    const changes = base ? answers.filter((value) => value !== null).map((value) => Math.abs(value / base - 1)) : [];
    effects.set(one.path, Math.max(0, ...changes));
    isNew = true;
  }
  return isNew;
}

/** Keep what a change that would help gains, for the parameters of library parts. */
export function helped(helps) {
  for (const { path, factor } of helps) if (path && factor) effects.set(path, Math.max(effects.get(path) ?? 0, Math.abs(factor - 1)));
}
