// The page: what is asked when, what is shown of an answer, buttons and keys.
import { Unanswered, ask, isSaved, newest, rested } from "./asking.js";
import { FILES, cover, make, mark, put, tab } from "./editor.js";
import { asked, forget, fragment, isOwnAddress, keep, keepColours, kept, keptByFrame, state, tellFrame, undo } from "./state.js";
import { drawMachine, glow } from "./machine.js";
import { open } from "./offline.js";
import { $, el, told, within } from "./words.js";
import * as answer from "./answer.js";
import * as curve from "./curve.js";
import * as effects from "./effects.js";
import * as film from "./film.js";
import * as predict from "./predict.js";
import * as share from "./share.js";
import * as sliders from "./sliders.js";
import * as spans from "./spans.js";
import * as walk from "./walk.js";

const LARGE = 2000; // ops of a run whose what-ifs take seconds: they come last
let run = null, pinned = null, picture = "", covered = false;

const question = (of = {}) => ({ ...asked(), part: state.part, pixels: Math.min(4000, Math.round($("timeline").clientWidth * devicePixelRatio) || 800), ...of });

/** The run of the present state: one under way, and one wish. */
const again = newest(async () => {
  const grey = setTimeout(() => document.body.classList.add("stale"), 100);
  try {
    const found = await ask("run", question());
    if (found.mistakes) return mistaken(found.mistakes);
    if (!found.stale) answered(found);
    document.body.classList.remove("stale");
  } catch (error) {
    troubled(error);
  } finally {
    clearTimeout(grey);
    await new Promise((done) => (document.hidden ? done() : requestAnimationFrame(done))); // one answer a frame is enough
  }
});

function answered(found) {
  run = found;
  keepColours(run.coloured);
  $("notice").hidden = $("mistaken").hidden = true;
  document.body.classList.remove("no-run");
  mark([]);
  show();
  if (found.picture !== picture) draw(found.picture);
  document.body.dataset.answers = Number(document.body.dataset.answers || 0) + 1;
  atRest();
}

function mistaken(mistakes) {
  mark(mistakes);
  document.body.classList.add("stale"); // what is shown is of the files before the mistake
  document.body.classList.toggle("no-run", !run);
  const [{ file, line, text }] = mistakes, where = line ? `${file}, line ${line}: ` : "";
  $("mistaken").hidden = false;
  $("mistaken").textContent = `${run ? "This answer is from before the error" : "No answer yet"}: ${where}${text}${mistakes.length > 1 ? `, and ${mistakes.length - 1} more` : ""}.`;
  if (!run) noAnswer();
  if (!run && FILES.includes(file)) tab(file);
}

function noAnswer() {
  $("time").textContent = "–";
  $("interval").textContent = "";
}

async function troubled(error) {
  if (!run) noAnswer();
  document.body.classList.add("stale");
  const lost = error instanceof Unanswered, text = el("textarea", { readOnly: true, ariaLabel: "the state of this page", value: lost ? await fragment() : "" });
  $("notice").replaceChildren(error.message, ...(lost ? [text] : []));
  $("notice").hidden = false;
}

/** Show the run as it is: after an answer, a pin, a theme or a prediction. */
function show() {
  if (!run) return;
  const hidden = predict.isHidden();
  answer.show(run, pinned, hidden);
  predict.show(run);
  walk.show(run, pinned, hidden);
  spans.show(run, hidden);
  film.show(run, hidden, run.ops > LARGE);
  glow(run.busy || {}, hidden);
  if (hidden !== covered) {
    cover((covered = hidden));
    sliders.show(sliders.sliders(), !hidden);
  }
  curve.draw(hidden);
}

async function draw(hash) {
  const found = await ask("picture", asked()).catch(() => null);
  if (!found?.boxes) return;
  picture = hash;
  drawMachine($("machine"), found);
  glow(run.busy || {}, predict.isHidden());
}

/** What is there before the first run: names, files, sliders, and the machine, which nothing has made busy yet. */
async function beforeTheRun() {
  answer.awaited(state.called);
  await asksSliders();
  const found = run ? null : await ask("machine", asked()).catch(() => null);
  if (run || !found?.boxes) return;
  picture = found.hash;
  drawMachine($("machine"), found);
}

/** When the hand rests: the address, words for screen readers, sentences and what would help, the curve. */
const atRest = rested(150, async () => {
  if (again.busy()) return atRest();
  keep();
  const of = run, hidden = predict.isHidden();
  $("spoken").textContent = hidden ? "The answer is hidden until you reveal it." : `${told(run)}${run.measure ? `, ${run.measure.name}` : ""}${run.interval ? `, ${within(run.interval)}` : ""}. ${run.text}`;
  const large = run.ops > LARGE && !isSaved(), resting = () => of === run && !again.busy();
  if (run.ops > LARGE) film.follow();
  await explained({ helps: !large }, resting);
  if (resting()) await curve.sweep(resting, run.measure);
  if (resting() && large) await explained({ helps: true }, resting);
  if (resting() && !isSaved() && !hidden) await weighed(resting);
  if (resting()) document.body.dataset.rests = Number(document.body.dataset.rests || 0) + 1;
});

/** Put the parameters that move the answer on top, and draw the curve of the strongest. */
async function weighed(resting) {
  if (!(await effects.weigh(sliders.sliders(), resting)) || predict.isHidden()) return;
  sliders.show(sliders.sliders(), true);
  if (resting() && curve.shownSlider() !== curve.shownCurve()?.one) await curve.sweep(resting, run.measure);
}

async function explained(of, resting) {
  const found = await ask("more", { ...asked(), ...of }).catch(() => null);
  if (found?.helps) effects.helped(found.helps);
  if (found?.helps?.length) predict.offer(found.helps);
  if (found?.text && resting() && !predict.isHidden()) answer.more(found, (path) => sliders.find(path) && (() => document.getElementById(`s-${path}`)?.focus()));
}

async function asksSliders() {
  const found = await ask("sliders", asked()).catch(() => null);
  effects.forgetEffects();
  if (found?.sliders) sliders.show(found.sliders);
}

const edited = rested(250, () => {
  asksSliders();
  again();
});

async function pin() {
  if (!run) return;
  state.pinned = state.pinned ? null : { machine: state.machine, workload: state.workload, called: state.called, set: { ...state.set } };
  await repin();
  show();
  keep();
}

/** The pinned run itself: the one on the screen, or asked for anew where the address brought it or a zoom cut it. */
async function repin() {
  const same = run && state.pinned && state.part[0] === 0 && state.part[1] === 1 && ["machine", "workload"].every((key) => state[key] === state.pinned[key]) && JSON.stringify(state.set) === JSON.stringify(state.pinned.set);
  const found = !state.pinned ? null : same ? run : await ask("run", question({ ...state.pinned, part: [0, 1] })).catch(() => null);
  pinned = found?.lanes ? found : null;
  $("pin").setAttribute("aria-pressed", String(state.pinned !== null));
  $("pin").textContent = state.pinned ? "Unpin" : "Pin";
}

function back() {
  if (!undo()) return;
  sliders.show(sliders.sliders(), !predict.isHidden());
  curve.outdated();
  again();
}

function themed() {
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  show();
}

function library(opened) {
  for (const which of FILES) {
    const names = opened.library?.[`${which}s`] || [];
    if (!names.length) continue;
    const select = el("select", { id: `open-${which}` }, el("option", { value: "" }, `open another ${which} …`), ...names.map((name) => el("option", { value: name }, name)));
    select.onchange = async () => {
      const name = select.value, found = await ask("file", { kind: which, name }).catch(troubled);
      select.value = "";
      if (!found?.text) return;
      forget();
      keepColours({});
      Object.assign(state, { [which]: found.text, called: { ...state.called, [which]: name }, set: {}, part: [0, 1], step: -1 });
      put();
      edited();
    };
    $("library").append(el("label", {}, el("span", { className: "unseen" }, `open another ${which}`), select));
  }
}

function wire() {
  sliders.wire((one) => {
    if (!predict.isHidden() || !state.guess.curve) state.curve = one.path;
    curve.outdated();
    again();
  });
  walk.wire((why) => (why === "step" ? keep() : again()));
  predict.wire(() => (show(), atRest(), keep()));
  spans.wire();
  film.wire();
  answer.wire();
  share.wire({ run: () => run, pinned: () => pinned, hidden: predict.isHidden, troubled });
  $("pin").onclick = pin;
  $("undo").onclick = back;
  $("theme").onclick = () => {
    state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    themed();
    keep();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  let wide = innerWidth;
  addEventListener("resize", rested(100, () => wide !== innerWidth && ((wide = innerWidth), show(), again()))); // a frame's height follows its content
  addEventListener("keydown", (event) => {
    const writes = event.target.closest?.("textarea, select, .cm-editor, input:not([type=range])");
    if (event.key === "Escape") for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false;
    if (writes) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "z") return event.preventDefault(), back();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "p") $("predict").click();
    if (event.key === "c") $("pin").click();
  });
  addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target) || event.target.closest(".menu button")) menu.open = false;
  });
  addEventListener("hashchange", () => isOwnAddress() || location.reload());
}

async function begin() {
  await open();
  themed();
  wire();
  const [, opened] = await Promise.all([make(edited, isSaved()), ask("opened", {})]);
  Object.assign(state, { machine: opened.machine, workload: opened.workload, called: opened.called || {}, set: { ...opened.set } });
  try {
    Object.assign(state, opened.state || {}, await (opened.state?.piece ? keptByFrame() : kept(location.hash)));
  } catch (error) {
    troubled(error);
  }
  themed();
  put();
  if (predict.isHidden()) cover((covered = true));
  library(opened);
  if (state.piece) {
    document.body.classList.add("piece");
    new ResizeObserver(() => tellFrame()).observe(document.documentElement);
  }
  await Promise.all([beforeTheRun().then(() => run && atRest()), again()]); // two processes answer; the curve needs the sliders
  if (state.pinned) await repin().then(show);
  document.body.dataset.ready = "yes";
}

begin().catch(troubled);
