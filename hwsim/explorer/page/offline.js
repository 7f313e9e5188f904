// An offline page answers its requests from the saved grid.
import { answerFrom } from "./asking.js";
import { $ } from "./words.js";
import { unpacked } from "./state.js";

const KEPT = "This page has timelines only for one moved slider at a time.";
const NO_FILM = "This page has animations only for one moved slider at a time.";

/** If answers were saved with the page, answer from them. */
export async function open() {
  const place = $("saved");
  if (!place) return;
  const saved = JSON.parse(await unpacked(place.textContent.trim())), doors = answers(saved);
  answerFrom(async (name, body) => (doors[name] ? doors[name](body) : { stale: true }));
  document.body.classList.add("saved");
}

function answers({ state, grid, more, pictures, sliders, base, films }) {
  const index = ({ path, values, at }, set) => (set[path] === undefined ? at : Math.max(0, values.indexOf(set[path])));
  const at = (set) => grid.axes.map((axis) => index(axis, set)), own = grid.axes.map((axis) => axis.at);
  const flat = (place) => place.reduce((found, each, axis) => found * grid.axes[axis].values.length + each, 0);
  const settings = (set) => Object.entries({ ...state.set, ...set });

  function run({ set, part }) {
    const place = at(set), time = grid.answers[flat(place)], found = grid.runs[place.join(",")];
    if (time === null || time === undefined) return { mistakes: [{ file: "", line: 0, column: 0, text: "this run was not saved, or its files have an error", hint: "move a slider back" }] };
    if (found) return { ...found, part: found.part, settings: settings(set), ...(part[0] > 0 || part[1] < 1 ? zoomed(found, part) : {}) };
    const bounds = grid.bounds[flat(place)].map(([cause, share]) => [cause, share * time, share]);
    const none = { lanes: [], path: [], segments: 0, spans: 0, sent: 0, families: [], verdicts: [], measures: [], facts: [], busy: {}, interval: null };
    const measure = grid.measure[flat(place)];
    return { ...base, ...none, measure, seconds: time, part: [0, time], settings: settings(set), bounds, text: said(place), warnings: [], note: KEPT };
  }

  function curve({ set, path }) {
    const axis = grid.axes.findIndex((each) => each.path === path), place = at(set);
    const points = grid.axes[axis].values.map((text, each) => {
      const there = flat(place.with(axis, each));
      return [text, grid.answers[there], grid.bounds[there]?.[0]?.[0] || "", grid.measure[there]];
    });
    return { path, points, left: [] };
  }

  const said = (place) => grid.runs[place.join(",")]?.text || `Mostly bound by ${grid.bounds[flat(place)]?.[0]?.[0]}.`;
  const isOwn = (set) => at(set).every((each, axis) => each === own[axis]);
  return {
    opened: () => ({ machine: state.machine, workload: state.workload, state }),
    sliders: () => ({ sliders }),
    run,
    curve,
    more: ({ set }) => (isOwn(set) ? more : { text: [said(at(set))], helps: [], derived: [] }),
    animated: ({ set, scene }) => {
      const kind = scene || films.kind, place = at(set).join(","), found = films.scenes[`${kind} ${place}`];
      return { kind, kinds: films.kinds, scene: found?.scene || null, text: found ? found.text : films.scenes[`${kind} ${own.join(",")}`] ? "This page has the animation only for its initial values." : NO_FILM };
    },
    picture: ({ set }) => pictures[(grid.runs[at(set).join(",")] || base).picture] || { stale: true },
    op: ({ set, op, name }) => {
      const found = isOwn(set) ? (more.derived || []).find((each) => each.op === op || each.name === name) : null;
      return found || { stale: true };
    },
  };
}

/** The spans of a part of the time, cut from those of the whole. */
function zoomed(run, [low, high]) {
  const TICKS = 1e6, from = low * TICKS, scale = 1 / (high - low);
  const lanes = run.lanes.map((lane) => {
    const kept = [...lane.at.keys()].filter((at) => lane.at[at] + lane.long[at] >= from && lane.at[at] <= high * TICKS);
    const begin = kept.map((at) => Math.max(0, (lane.at[at] - from) * scale)), pick = (list) => (list.length ? kept.map((at) => list[at]) : []);
    const long = kept.map((at, each) => Math.min(TICKS, (lane.at[at] + lane.long[at] - from) * scale) - begin[each]);
    return { ...lane, at: begin, long, name_of: pick(lane.name_of), op: pick(lane.op), wait: pick(lane.wait).map((each) => each * scale), full: pick(lane.full || []), inside: pick(lane.inside || []).map((each) => each * scale) };
  });
  return { lanes, part: [low * run.seconds, high * run.seconds] };
}
