// Navigation of the timeline: steps along the critical path with the reason of each wait, derivations under the pointer, zoom.
import { ask, rested } from "./asking.js";
import { asked, state } from "./state.js";
import { box, draw, laidOut, spanAt } from "./timeline.js";
import { CanvasPaper } from "./paper.js";
import { $, colours, counted, el, seconds } from "./words.js";

let place = null, seen = { run: null, hidden: false };
const known = new Map(); // derivations of the run shown, by op

/** Draw the run; a new one forgets the derivations of the old. */
export function show(run, pinned, hidden) {
  if (run !== seen.run) known.clear();
  seen = { run, pinned, hidden };
  state.step = Math.min(state.step, run.path.length - 1);
  paint();
}

export function paint() {
  const { run, pinned, hidden } = seen, canvas = $("timeline");
  if (!run) return;
  const wide = canvas.clientWidth, theme = colours();
  place = laidOut(run, hidden ? null : pinned, wide);
  canvas.style.height = `${place.tall}px`;
  draw(new CanvasPaper(canvas, wide, place.tall, theme), place, { step: state.step, hidden, theme });
  const drawn = run.sent < run.spans ? `, drawn as ${run.sent.toLocaleString("en")}` : "", more = run.lanes_left ? `, ${run.lanes_left} more lanes` : "";
  $("steps").hidden = $("spans").hidden = !run.lanes.length;
  $("drawn").textContent = hidden || !run.ops ? "" : `${counted(run.ops, "op")}${drawn}${more}`;
  $("families").replaceChildren(...(hidden ? [] : run.families.map(([name, tint]) => el("li", {}, swatch(theme.tints[tint]), name))));
  $("whole").hidden = state.part[0] === 0 && state.part[1] === 1;
  says(run.path[state.step]);
}

const swatch = (tint) => {
  const made = el("i");
  made.style.background = tint;
  return made;
};

function says(piece) {
  const { run, hidden } = seen, many = run.path.length, left = run.segments - many;
  $("why").replaceChildren();
  if (hidden || !many) return $("step").replaceChildren();
  if (!piece) {
    const of = left > 0 ? `the ${many} longest of ${run.segments.toLocaleString("en")} segments` : counted(many, "segment");
    return $("step").replaceChildren(`Black line: critical path, ${of}. Step along it with ← and → in the timeline, or click a span.`);
  }
  const [at, to, lane, name, cause, reason, op] = piece, long = ((to - at) / 1e6) * run.seconds;
  $("step").replaceChildren(el("b", {}, `${state.step + 1} of ${many}: ${name}`), lane >= 0 ? ` on ${run.lanes[lane].name}` : "", `, ${seconds(long)} for ${cause}. `, reason ? `It starts when ${reason}.` : "");
  derive(op, name);
}

const derive = rested(120, async (op, name) => {
  const found = await derived(op, name);
  if (found && seen.run.path[state.step]?.[6] === op) $("why").replaceChildren(...found.filter((line) => !line.startsWith("It starts when")).map((line) => el("li", {}, line)));
});

/** The lines of an op's derivation, with the numbers put in. */
async function derived(op, name) {
  if (op === undefined || op < 0) return [];
  const run = seen.run;
  if (!known.has(op)) {
    const found = await ask("op", { ...asked(), op, name }).catch(() => null);
    if (!found || found.stale || found.mistakes || run !== seen.run) return null;
    const lines = found.lines.map(([label, formula, numbers, time]) => `${label}: ${formula}${numbers ? ` = ${numbers}` : ""} = ${seconds(time, 4)}`);
    known.set(op, [...lines, ...(found.unloaded ? [`Unloaded: ${found.unloaded}`] : []), ...(found.reasons || []), ...(found.slack ? [found.slack] : []), ...(found.waits ? [`It starts when ${found.waits}.`] : [])]);
  }
  return known.get(op);
}

/** Wire keys and pointer; `again(why)` asks for a run with another part of the time. */
export function wire(again) {
  const canvas = $("timeline"), tip = $("tip");
  const to = (step) => {
    state.step = Math.max(0, Math.min(seen.run.path.length - 1, step));
    const piece = seen.run.path[state.step], middle = piece && (piece[0] + piece[1]) / 2e6;
    if (piece && !box(place, piece) && piece[2] >= 0) shift(middle, (state.part[1] - state.part[0]) / 2);
    else paint();
    again("step");
  };
  const shift = (middle, half) => {
    half = Math.min(0.5, Math.max(1e-5, half));
    const from = Math.min(Math.max(0, middle - half), 1 - 2 * half);
    state.part = half === 0.5 ? [0, 1] : [from, from + 2 * half];
    again("zoom");
  };
  const zoom = (factor, about) => {
    const piece = seen.run.path[state.step], half = ((state.part[1] - state.part[0]) / 2) * factor;
    shift(about ?? (piece ? (piece[0] + piece[1]) / 2e6 : (state.part[0] + state.part[1]) / 2), half);
  };
  const keys = { ArrowRight: () => to(state.step + 1), ArrowLeft: () => to(state.step - 1), Home: () => to(0), End: () => to(seen.run.path.length - 1) };
  Object.assign(keys, { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => shift(0.5, 0.5) });
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || seen.hidden || !seen.run) return;
    keys[event.key]();
    event.preventDefault();
  });
  $("closer").onclick = () => zoom(0.5);
  $("farther").onclick = () => zoom(2);
  $("whole").onclick = () => shift(0.5, 0.5);
  $("before").onclick = () => to(state.step < 0 ? 0 : state.step - 1);
  $("after").onclick = () => to(state.step + 1);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !place) return;
    event.preventDefault();
    const { from, to: end, left, right } = place;
    zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, (from + ((event.offsetX - left) / (right - left)) * (end - from)) / seen.run.seconds);
  }, { passive: false });
  let over = null;
  const detail = rested(90, async (found) => {
    const lines = await derived(found.op, found.name);
    if (over === found && lines?.length) tip.append(...lines.map((line) => el("p", {}, line)));
  });
  canvas.addEventListener("pointermove", (event) => {
    const found = place && !seen.hidden ? spanAt(place, event.offsetX, event.offsetY) : null;
    if (found && over && found.op === over.op && found.start === over.start) return put(event);
    over = found;
    tip.hidden = !found;
    if (!found) return detail.stop();
    const waits = found.waits ? `, including ${seconds(found.waits)} waiting` : "", many = found.whole ? "" : ` (neighbours of the same name, merged${found.full < 100 ? `, busy for ${found.full} % of it` : ""})`;
    tip.replaceChildren(el("b", {}, `${found.name} on ${found.lane}`), el("p", {}, `${seconds(found.start, 4)} to ${seconds(found.end, 4)}: ${seconds(found.end - found.start)}${waits}${many}`));
    put(event);
    detail(found);
  });
  const put = (event) => {
    tip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, canvas.clientWidth - Math.min(400, canvas.clientWidth)))}px`;
    tip.style.top = `${event.offsetY + 18}px`;
  };
  canvas.addEventListener("pointerleave", () => ((tip.hidden = true), (over = null), detail.stop()));
  canvas.addEventListener("click", (event) => {
    const found = place && !seen.hidden ? spanAt(place, event.offsetX, event.offsetY) : null;
    const middle = found && ((found.start + found.end) / 2 / seen.run.seconds) * 1e6, lane = found && place.lanes.findIndex((each) => each.name === found.lane);
    const at = found ? seen.run.path.findIndex((piece) => piece[2] === lane && piece[0] <= middle && middle <= piece[1]) : -1;
    if (at >= 0) to(at);
  });
  addEventListener("keydown", (event) => event.key === "Escape" && (tip.hidden = true));
}
