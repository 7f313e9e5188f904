// Predict, then reveal: everything that tells the answer is hidden until time, limit and best change are guessed, and then compared.
import { showClass, wireClass } from "./guesses.js";
import { keep, packed, state } from "./state.js";
import { ABOVE, draw, scale, shownCurve } from "./curve.js";
import { $, amount, el, percent, readAmount, rounded, seconds, unit, value } from "./words.js";

let changed = () => {}, mark = -1, asks = "s", shown = null, helps = []; // asks: the unit in which a guess is typed

export const isHidden = () => Boolean(state.guess && !state.guess.done);

/** Wire buttons, fields and pen; `again()` shows the run anew. */
export function wire(again) {
  changed = again;
  $("predict").onclick = () => begin();
  $("reveal").onclick = () => reveal();
  $("hand-in").onclick = () => handIn();
  $("guess").addEventListener("keydown", (event) => event.key === "Enter" && reveal());
  $("guess").oninput = () => {
    state.guess.time = $("guess").value.slice(0, 40);
    $("guess").setAttribute("aria-invalid", String(Boolean(state.guess.time) && readAmount(state.guess.time, asks) === null));
    keep();
  };
  for (const what of ["limit", "change"])
    $(`guess-${what}`).onchange = () => {
      state.guess[what] = $(`guess-${what}`).value;
      keep();
    };
  wireClass(() => shown);
  pen();
}

function begin() {
  if (isHidden()) return;
  const again = state.guess?.done;
  state.guess = again ? null : { time: "", limit: "", change: "", curve: null, done: false };
  changed();
  if (!again) $("guess").focus();
}

function reveal() {
  if (!isHidden()) return;
  state.guess.done = true;
  changed();
  $("predict").focus();
}

async function handIn() {
  const text = `#1.${await packed(JSON.stringify({ v: 1, name: state.piece?.name, guess: state.guess, set: state.set }))}`;
  await navigator.clipboard.writeText(text).then(() => ($("hand-in").textContent = "Copied: hand it in"), () => prompt("Copy this text and hand it in:", text));
}

/** Take note of the changes that would help, among which the reader chooses: the six largest, in alphabetical order. */
export function offer(found) {
  helps = [...found].sort((one, other) => other.factor - one.factor).slice(0, 6);
  if (shown) choices(shown);
}

function choices(run) {
  const fill = (what, names) => {
    const select = $(`guess-${what}`), all = names.length > 1 ? names : [], chosen = state.guess?.[what] || "";
    $(`${what}-asks`).hidden = !all.length;
    if ([...select.options].slice(1).map((option) => option.value).join("\n") !== all.join("\n"))
      select.replaceChildren(el("option", { value: "" }, "choose …"), ...all.map((name) => el("option", { value: name }, name)));
    select.value = all.includes(chosen) ? chosen : "";
  };
  fill("limit", run.limits || []);
  fill("change", helps.map((each) => each.text).sort());
}

/** The panel: fields while hidden, the verdict once revealed. */
export function show(run) {
  const on = state.guess !== null, hidden = isHidden();
  shown = run;
  asks = unit(run);
  $("guess-asks").textContent = state.piece?.ask || (run.measure ? `What will be the ${run.measure.name}?` : "How long will it take?");
  $("guess").placeholder = asks === "s" ? "200 ms" : "1000/s";
  document.body.classList.toggle("hidden-answer", hidden);
  $("predict").textContent = on && !hidden ? "End prediction" : "Predict first";
  $("predict").disabled = hidden;
  $("prediction").hidden = !on;
  $("asks").hidden = !hidden;
  if (on && $("guess").value !== state.guess.time) $("guess").value = state.guess.time || "";
  choices(run);
  $("verdict").replaceChildren(...(on && !hidden ? verdict(run) : []));
  showClass(run, hidden);
}

function verdict(run) {
  const said = [], time = readAmount(state.guess.time || "", asks), real = value(run), [more, less] = asks === "s" ? ["long", "short"] : ["high", "low"];
  if (state.guess.time && time === null) said.push(el("p", {}, `“${state.guess.time}” was not read: type a number with its unit, such as ${asks === "s" ? "45 ms" : "1000/s"}.`));
  if (time !== null && real === null) said.push(el("p", {}, "There is no steady state: requests arrive faster than they are completed."));
  else if (time !== null) {
    const off = time / real - 1, inside = run.interval && run.interval.low <= time && time <= run.interval.high;
    const how = Math.abs(off) < 0.005 ? "right" : off > 1 ? `${rounded(time / real, 2)}x too ${more}` : off < -0.5 ? `${rounded(real / time, 2)}x too ${less}` : `${Math.round(Math.abs(off) * 100)} % too ${off > 0 ? more : less}`;
    said.push(el("p", {}, asks === "s" ? "Your time: " : "Your guess: ", el("b", {}, amount(time, asks)), `, ${how}${inside ? ", and inside the interval" : ""}.`));
  }
  const theory = time !== null && real !== null && Math.abs(time / real - 1) > 0.05 && run.theories?.find(([, other]) => Math.abs(time / other - 1) < 0.05);
  if (theory) said.push(el("p", {}, `${seconds(theory[1])} is the time of ${theory[0]}.`));
  said.push(...ofLimit(run), ...ofChange());
  const found = worst();
  if (found) said.push(el("p", {}, found[0] < 0.07 ? "Your curve is within 5 %." : `Your curve is off by up to ${rounded(2 ** found[0], 2)}x, at ${found[1]}.`));
  return said.length ? said : [el("p", {}, "You predicted nothing.")];
}

function ofLimit({ bounds }) {
  const { limit } = state.guess;
  if (!limit || !bounds.length) return [];
  const share = (name) => percent(bounds.find(([cause]) => cause === name)?.[2] || 0), [best] = bounds[0];
  if (limit === best) return [el("p", {}, "Your limit: ", el("b", {}, limit), `, right: it bounds ${share(best)} of the critical path.`)];
  return [el("p", {}, "Your limit: ", el("b", {}, limit), `; it bounds ${share(limit)} of the critical path. `, el("b", {}, best), ` bounds ${share(best)}.`)];
}

function ofChange() {
  const own = helps.find(({ text }) => text === state.guess.change), [best] = helps, gain = ({ factor }) => (factor < 1.005 ? "no gain" : `${factor.toPrecision(3)}x`);
  if (!own) return [];
  if (own.factor > best.factor * 0.995) return [el("p", {}, "Your change: ", el("b", {}, own.text), `, right: ${gain(own)}.`)];
  return [el("p", {}, "Your change: ", el("b", {}, own.text), `, ${gain(own)}. The best one is `, el("b", {}, best.text), `, ${gain(best)}.`)];
}

/** How far the drawn curve is off at worst: [log2 of the factor, value], or null. */
function worst() {
  const curve = shownCurve();
  if (!curve || state.guess?.curve?.path !== curve.one.path) return null;
  const { base } = scale(), times = new Map(curve.points);
  let found = null;
  for (const [at, log] of state.guess.curve.points) {
    const off = times.get(at) ? Math.abs(log - Math.log2(times.get(at) / base)) : -1;
    if (off > (found?.[0] ?? -1)) found = [off, curve.one.values[at]];
  }
  return found;
}

/** Put a point of the guess: `log`: the time's base-2 logarithm, as a multiple of that at the file's own value. */
function put(curve, at, log) {
  const { most } = scale(), path = curve.one.path;
  if (state.guess.curve?.path !== path) state.guess.curve = { path, points: [] };
  const points = new Map(state.guess.curve.points).set(at, Math.round(Math.max(-most, Math.min(most, log)) * 100) / 100);
  state.guess.curve.points = [...points].sort((one, other) => one[0] - other[0]);
  mark = at;
}

/** Draw by pointer or by keys. */
function pen() {
  const canvas = $("curve");
  let before = null;
  const move = (event) => {
    const curve = shownCurve();
    if (!isHidden() || !curve || !event.buttons) return (before = null);
    const { x, bottom, most } = scale(), log = (((bottom - event.offsetY) / (bottom - ABOVE)) * 2 - 1) * most;
    const near = curve.points.reduce((best, [at], here) => (Math.abs(x(at) - event.offsetX) < Math.abs(x(curve.points[best][0]) - event.offsetX) ? here : best), 0);
    for (let at = before ? before[0] : near; at !== near; at += Math.sign(near - at))
      if (at !== before[0]) put(curve, curve.points[at][0], before[1] + ((log - before[1]) * (at - before[0])) / (near - before[0]));
    put(curve, curve.points[near][0], log);
    before = [near, log];
    draw(true);
  };
  canvas.addEventListener("pointerdown", (event) => isHidden() && (canvas.setPointerCapture(event.pointerId), move(event)));
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", () => {
    before = null;
    if (isHidden()) keep();
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 0.125], ArrowDown: [0, -0.125] }[event.key], curve = shownCurve();
    if (!isHidden() || !curve || !step) return;
    event.preventDefault();
    const places = curve.points.map(([at]) => at), from = places.indexOf(mark), at = places[Math.max(0, Math.min(places.length - 1, from < 0 ? 0 : from + step[0]))];
    const own = new Map(state.guess.curve?.path === curve.one.path ? state.guess.curve.points : []);
    put(curve, at, (own.get(at) ?? own.get(places[from]) ?? 0) + step[1]);
    draw(true, mark);
    canvas.setAttribute("aria-label", `your curve at ${curve.one.values[at]}: ${rounded(2 ** new Map(state.guess.curve.points).get(at))} times the value at ${curve.one.values[curve.one.at]}`);
    keep();
  });
}
