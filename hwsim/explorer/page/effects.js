// How much each parameter moves the answer, why some do not, and which of their values are refused: asked while nobody waits.
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
export const effect = (path) => effects.get(path)?.size;
/** Why a slider does not move the answer. */
export const reason = (path) => effects.get(path)?.reason || "";

/** A slider with the values that are not refused. */
export function allowed(one) {
  const legal = effects.get(one.path)?.legal;
  if (!legal || legal.length === one.values.length || !legal.includes(one.at)) return one;
  return { ...one, values: legal.map((at) => one.values[at]), numbers: legal.map((at) => one.numbers[at]), at: legal.indexOf(one.at) };
}

/** Ask for the effect of each slider that has none; `may()`: false once the run on the page is another. True once something is new. */
export async function weigh(sliders, may) {
  let paths = sliders.filter(({ group, path }) => group !== "parts" && !effects.get(path)?.legal).map(({ path }) => path), isNew = false;
  while (paths.length && spent <= LONGEST) {
    const before = performance.now(), found = await ask("effects", { ...asked(), paths }).catch(() => null);
    if (!found?.effects?.length || !may()) return isNew;
    spent += performance.now() - before;
    for (const [path, size, reason, legal] of found.effects) effects.set(path, { size: size ?? 0, reason, legal });
    paths = found.left;
    isNew = true;
  }
  return isNew;
}

/** Keep what a change that would help gains, for the parameters of library parts. */
export function helped(helps) {
  for (const { path, factor } of helps) if (path && factor && !effects.get(path)?.legal) effects.set(path, { size: Math.max(effect(path) ?? 0, Math.abs(factor - 1)) });
}
