// A slider for each number of the files: positions that the server chose by its unit; those that move the answer first, strongest
// on top, those without effect and those of library parts folded.
import { isSaved } from "./asking.js";
import { LEAST, allowed, effect, reason } from "./effects.js";
import { remember, state } from "./state.js";
import { $, el, short } from "./words.js";

const TITLES = { parameters: "Parameters", workload: "Workload", machine: "Machine" };
let all = [], turned = () => {};

/** Call `moved(slider)` whenever a slider was moved. */
export const wire = (moved) => (turned = moved);
export const sliders = () => all;
export const find = (path) => all.find((one) => one.path === path);
/** The position at which a slider stands. */
export const position = (one) => {
  const set = state.set[one.path];
  return set === undefined ? one.at : one.values.indexOf(set);
};

/** Show these sliders; `byEffect`: in the order of their effect on the answer, as far as it is known. */
export function show(found, byEffect = false) {
  all = found.map(allowed);
  const open = [...$("sliders").querySelectorAll("details[open]")].map((box) => box.id), focused = document.activeElement?.id;
  const own = all.filter(({ group }) => group !== "parts"), known = byEffect && !isSaved() && own.some(({ path }) => effect(path) !== undefined);
  const strong = known ? all.filter(({ path }) => effect(path) > LEAST).sort((one, other) => effect(other.path) - effect(one.path)) : [];
  const idle = known ? own.filter(({ path }) => effect(path) <= LEAST) : [], left = own.filter((one) => !strong.includes(one) && !idle.includes(one));
  const groups = Object.entries(TITLES).map(([group, title]) => [title, left.filter((one) => one.group === group)]).filter(([, many]) => many.length);
  const rest = all.filter((one) => one.group === "parts" && !strong.includes(one));
  if (strong.length) groups.unshift(["Strongest effect first", strong]);
  $("sliders").replaceChildren(
    ...groups.flatMap(([title, many]) => [el("h3", {}, title), ...many.map(slider)]),
    ...(idle.length ? [folded("idle", `${idle.length} ${idle.length === 1 ? "does" : "do"} not matter here`, idle, open)] : []),
    ...(rest.length ? [folded("rest", `${rest.length} more parameters of library parts`, rest, open)] : []),
  );
  if (!all.length) $("sliders").replaceChildren(el("p", { className: "soft" }, "No parameters: the files have none, or they have an error."));
  if (focused?.startsWith("s-")) document.getElementById(focused)?.focus();
}

/** The strongest slider, once effects are known. */
export const strongest = () => all.reduce((best, one) => ((effect(one.path) ?? 0) > (best ? effect(best.path) : LEAST) ? one : best), null);

function folded(id, title, rest, open) {
  const box = el("details", { id }, el("summary", {}, title));
  const field = el("input", { type: "search", placeholder: "find a parameter", ariaLabel: `find one of ${title}` }), list = el("div");
  const fill = () => {
    const wanted = field.value.toLowerCase().split(/\s+/), hits = rest.filter((one) => wanted.every((word) => `${one.label} ${one.path}`.toLowerCase().includes(word)));
    list.replaceChildren(...hits.slice(0, 60).map(slider), ...(hits.length > 60 ? [el("p", { className: "soft" }, `${hits.length - 60} more: type a name.`)] : []));
  };
  field.oninput = fill;
  box.append(field, list);
  box.addEventListener("toggle", () => box.open && !list.childElementCount && fill());
  if (open.includes(id) || rest.some((one) => one.path in state.set)) box.open = true;
  return box;
}

function slider(one) {
  const why = reason(one.path), id = `s-${one.path}`, box = el("div", { className: "slider" }), said = el("output", { htmlFor: id });
  const input = el("input", { type: "range", id, min: 0, max: one.values.length - 1, step: 1 });
  const back = el("button", { className: "plain back", title: "reset (Delete)", ariaLabel: `reset ${one.label}` }, "↺");
  const write = () => {
    const text = state.set[one.path] ?? one.text;
    said.textContent = short(text);
    input.setAttribute("aria-valuetext", said.textContent);
    const moved = state.set[one.path] !== undefined;
    box.classList.toggle("moved", moved);
    back.hidden = !moved;
  };
  const put = (at) => {
    remember(one.path);
    if (at === one.at) delete state.set[one.path];
    else state.set[one.path] = one.values[at];
    write();
    turned(one);
  };
  input.value = Math.max(0, position(one)); // a value between two positions, given in an address, stays as it is until it is turned
  input.oninput = () => put(Number(input.value));
  input.addEventListener("keydown", (event) => event.key === "Delete" && back.onclick());
  back.onclick = () => ((input.value = one.at), put(one.at), input.focus());
  const track = el("div", { className: "track" }, input), mark = el("span", { className: "own" });
  mark.style.left = `calc(8px + (100% - 16px) * ${one.at / Math.max(1, one.values.length - 1)})`;
  track.append(mark);
  const label = el("label", { htmlFor: id, title: one.path }, one.label);
  box.append(el("div", { className: "head" }, label, back, said), track, ...(why ? [el("small", { className: "reason" }, why)] : one.source ? [el("small", { title: one.source }, one.source)] : []));
  input.disabled = one.values.length < 2;
  write();
  return box;
}
