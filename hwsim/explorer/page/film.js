// The animation of the visible run: play, pause, step and scrub; it follows sliders.
import { ask, newest } from "./asking.js";
import { asked, keep, state } from "./state.js";
import { draw, events, present } from "./stage.js";
import { $, colours, download, el, seconds } from "./words.js";

const SPEEDS = [0.125, 0.25, 0.5, 1, 2, 4], CALM = 0.5; // seconds between still pictures where motion is not wanted
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let run = null, hidden = false, found = null, part = 0, playing = false, before = 0, listed = "", timer = 0;

const isOpen = () => state.film !== "" && !hidden && Boolean(run?.ops);
const scene = () => found?.scene;
const instant = () => scene().begin + part * (scene().end - scene().begin);

/** Show a run; its scene is requested while the animation is open. `large`: only once the input rests. */
export function show(ofRun, isHidden, large) {
  const moved = ofRun !== run || isHidden !== hidden;
  run = ofRun;
  hidden = isHidden;
  if (hidden) pause();
  $("watch").setAttribute("aria-expanded", String(state.film !== ""));
  $("watch").disabled = hidden;
  $("watch").hidden = !run.ops;
  $("film").hidden = !isOpen();
  if (!isOpen()) return;
  if (!moved) return paint();
  $("stage").classList.toggle("old", found !== null);
  if (!large) follow();
}

/** Request the scene of the visible run. */
export const follow = newest(async () => {
  if (!isOpen()) return;
  const texts = state.machine + state.workload;
  const answer = await ask("animated", { ...asked(), scene: state.film === "first" ? "" : state.film, listed: listed !== texts }).catch((error) => ({ scene: null, text: error.message }));
  if (answer.stale || !isOpen()) return;
  found = answer.mistakes ? { scene: null, text: answer.mistakes[0].text } : answer;
  if (answer.kinds) offer(answer, texts);
  if (scene()) found.events = events(scene());
  else pause();
  paint();
});

function offer({ kinds, kind }, texts) {
  listed = texts;
  if (state.film !== kind) (state.film = kind), keep();
  $("film-kind").replaceChildren(...kinds.map(([name, called, why]) => el("option", { value: name, disabled: Boolean(why), title: why, selected: name === kind }, called)));
  const missing = kinds.filter(([, , why]) => why);
  $("film-lacks").textContent = missing.map(([, called, why]) => `${called[0].toUpperCase()}${called.slice(1)}: ${why}.`).join(" ");
  $("film-lacks").parentElement.hidden = !missing.length;
}

function paint() {
  const there = Boolean(scene());
  for (const id of ["film-title", "film-below", "stage", "film-keys", "film-now"]) $(id).hidden = !there;
  $("film-says").textContent = found?.text || "";
  $("stage").classList.remove("old");
  if (!there || !isOpen()) return;
  $("film-title").textContent = scene().title;
  $("film-below").textContent = `${scene().below.replace("\n", "; ")}. One second shows ${seconds(((scene().end - scene().begin) / scene().seconds) * speed())} of the run.`;
  draw($("stage"), scene(), part, colours());
  const range = $("film-at"), time = seconds(instant(), 4);
  range.value = Math.round(part * 1000);
  range.setAttribute("aria-valuetext", time);
  $("film-time").textContent = time;
  const view = $("stage").parentElement;
  if (playing && found.kind === "lanes") view.scrollLeft = part * (view.scrollWidth - view.clientWidth); // in a narrow window
  $("play").textContent = playing ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(playing));
  if (!playing) $("film-now").textContent = told();
}

/** The state at this instant, in words. */
function told() {
  const [there, worked] = present(scene(), part), at = `At ${seconds(instant(), 4)}: `;
  if (found.kind === "lanes") return `${at}${worked} ${worked === 1 ? "span is" : "spans are"} running.`;
  if (found.kind === "sends") return `${at}${there} ${there === 1 ? "send is" : "sends are"} in flight.`;
  return `${at}${worked} served, ${there - worked} ${there - worked === 1 ? "waits" : "wait"}.`;
}

const speed = () => Number($("speed").value);

function go(to) {
  part = Math.min(1, Math.max(0, to));
  paint();
}

const step = (forward) => {
  pause();
  const all = found.events;
  go(forward ? (all.find((each) => each > part + 1e-9) ?? 1) : (all.findLast((each) => each < part - 1e-9) ?? 0));
};

function pause() {
  playing = false;
  clearTimeout(timer);
  if (scene() && isOpen()) paint();
}

function play() {
  if (playing) return pause();
  if (!scene()) return;
  if (part >= 1) part = 0;
  playing = true;
  before = performance.now();
  next();
}

/** Draw the next frame, or still pictures if the user prefers reduced motion. */
function next() {
  if (calm.matches) timer = setTimeout(() => frame(performance.now()), CALM * 1000);
  else requestAnimationFrame(frame);
}

function frame(now) {
  if (!playing) return;
  go(part + ((now - before) / 1000 / scene().seconds) * speed());
  before = now;
  if (part >= 1) return pause();
  next();
}

export function wire() {
  $("speed").replaceChildren(...SPEEDS.map((each) => el("option", { value: each, selected: each === 1 }, each < 1 ? `1/${1 / each}` : String(each))));
  $("watch").onclick = () => {
    state.film = state.film ? "" : "first";
    pause();
    part = 0;
    listed = "";
    $("film").hidden = !isOpen();
    $("watch").setAttribute("aria-expanded", String(isOpen()));
    if (isOpen()) (follow(), $("film").scrollIntoView({ block: "nearest" }));
    keep();
  };
  $("film-kind").onchange = () => {
    state.film = $("film-kind").value;
    pause();
    part = 0;
    follow();
    keep();
  };
  $("play").onclick = play;
  $("film-before").onclick = () => step(false);
  $("film-after").onclick = () => step(true);
  $("film-at").oninput = () => (pause(), go(Number($("film-at").value) / 1000));
  $("speed").onchange = () => paint();
  $("film-svg").onclick = save;
  const faster = (by) => () => (($("speed").selectedIndex = Math.min(SPEEDS.length - 1, Math.max(0, $("speed").selectedIndex + by))), paint());
  const keys = { " ": play, ArrowRight: () => step(true), ArrowLeft: () => step(false), Home: () => (pause(), go(0)), End: () => (pause(), go(1)), "+": faster(1), "=": faster(1), "-": faster(-1) };
  $("stage").addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || !scene()) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
}

async function save() {
  const svg = await ask("animated", { ...asked(), scene: found.kind, drawn: document.documentElement.dataset.theme });
  if (svg.svg) download(`${found.kind}.svg`, "image/svg+xml", svg.svg);
}
