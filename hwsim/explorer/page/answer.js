// The answer: time, interval, bar of bounds, sentences, changes that would help, and the difference from a pinned run.
import { $, against, amount, causeTint, colours, counted, el, isHatched, percent, seconds, tintCauses, told, value, within } from "./words.js";

const SHOWN = new Set(["time", "bottleneck", "expectation", "set"]); // labels of the summary that the page shows elsewhere
const LAST = new Set(["front end", "memory", "GPU memory", "parallel plan", "energy"]); // labels that follow all others

/** Show that the first run is being computed. */
export function awaited({ machine, workload }) {
  $("title").textContent = workload && machine ? `${workload}, on ${machine}` : "";
  $("interval").textContent = "Computing the first run.";
}

/** Show a run; `hidden`: show nothing that reveals its time, neither to screen readers nor in the title of the tab. */
export function show(run, pinned, hidden) {
  $("title").textContent = `${run.workload}, on ${run.machine}`;
  $("settings").textContent = run.settings.map(([path, text]) => `${path} = ${text}`).join(", ");
  document.title = `${hidden ? "?" : told(run)} · ${run.workload}`;
  $("time").textContent = hidden ? "?" : told(run);
  $("time").classList.toggle("words", !hidden && value(run) === null);
  if (hidden) $("spoken").textContent = "The answer is hidden until you reveal it.";
  $("interval").textContent = run.measure ? run.measure.name : hidden || !run.interval ? "" : within(run.interval);
  $("interval").title = hidden || !run.interval ? "" : run.interval.text;
  $("now").textContent = hidden ? "?" : `${told(run)}${run.bounds.length ? `, ${run.bounds[0][0]} ${percent(run.bounds[0][2])}` : ""}`;
  bar(hidden ? { ...run, bounds: [] } : run);
  $("limits-of").textContent = hidden || !run.measure || !run.bounds.length ? "" : run.ops ? `Critical path of ${seconds(run.seconds)} by bound, including waiting for requests` : "Where requests above p99 spend their time";
  if (hidden || !$("says").textContent) $("says").textContent = hidden ? "" : run.text;
  if (hidden) $("helps").replaceChildren();
  for (const id of ["says", "helps"]) $(id).classList.toggle("old", !hidden); // dimmed until the answer to `more` arrives
  facts(hidden ? [] : (run.facts ?? []).filter(([name]) => !SHOWN.has(name) && (name !== "90 % interval" || !run.interval)));
  $("verdicts").replaceChildren(...(hidden ? [] : [...run.verdicts.filter(([, , status]) => status !== "skipped").map(verdict), ...run.warnings.map((text) => el("li", { className: "warning" }, text))]));
  difference(hidden ? null : pinned, run);
}

/** Show the other facts of the summary: continuation lines stay in their row, equal labels share a row, all but the first rows are folded. */
function facts(rows) {
  const groups = [], byName = new Map(), many = 4;
  for (const [name, text] of rows) {
    if (name || !groups.length) groups.push([name, [text]]);
    else groups.at(-1)[1].push(text);
  }
  for (const [name, lines] of groups) byName.set(name, [...(byName.get(name) || []), lines]);
  const ordered = [...byName].sort(([one], [other]) => LAST.has(one) - LAST.has(other));
  const shown = ordered.map(([name, alike]) => {
    const more = alike.length > 2 ? el("small", {}, ` and ${alike.length - 2} more`) : "";
    return [el("dt", {}, name), el("dd", { title: alike.flat().join("\n") }, ...alike.slice(0, 2).flat().flatMap((line, at) => (at ? [el("br"), line] : [line])), more)];
  });
  $("measures").replaceChildren(...shown.slice(0, many).flat());
  $("facts").hidden = shown.length <= many;
  $("facts").replaceChildren(el("summary", {}, `${counted(shown.length - many, "more line")} of the summary`), el("dl", { className: "facts" }, ...shown.slice(many).flat()));
}

/** In a layout of one column, show the answer in a bar at the edge while it is scrolled out of view. */
export const wire = () =>
  new IntersectionObserver(([seen]) => ($("now").hidden = seen.isIntersecting)).observe($("time"));

function bar(run) {
  const { bounds } = run, { tints, of } = colours();
  tintCauses(run);
  const look = (cause) => {
    const tint = tints[causeTint(cause)];
    return isHatched(cause) ? `repeating-linear-gradient(135deg, ${tint} 0 4px, ${of("card")} 4px 6px)` : tint;
  };
  $("bar").replaceChildren(
    ...bounds.map(([cause, , share]) => {
      const piece = el("i");
      piece.style.width = `${share * 100}%`;
      piece.style.background = look(cause);
      return piece;
    }),
  );
  const said = bounds.map(([cause, , share]) => `${cause} ${percent(share)}`).join(", ");
  $("bar").setAttribute("aria-label", bounds.length ? `critical path by bound: ${said}` : "hidden");
  $("legend").replaceChildren(
    ...bounds.filter(([, , share], at) => at < 2 || share >= 0.005).slice(0, 6).map(([cause, time, share]) => {
      const swatch = el("i");
      swatch.style.background = look(cause);
      return el("li", { title: seconds(time) }, swatch, el("b", {}, cause), ` ${percent(share)}`);
    }),
  );
}

function verdict([quantity, wanted, status, reason]) {
  return el("li", { className: status === "met" ? "met" : "missed" }, `Expected ${quantity} ${wanted}: ${status}${reason ? `, ${reason}` : ""}`);
}

/** Show sentences and changes that would help, once the input rests; `turn(path)` returns the handler if a slider has that path. */
export function more(found, turn) {
  for (const id of ["says", "helps"]) $(id).classList.remove("old");
  const text = found.text.filter((each) => !each.startsWith("What helps")).slice(0, 3).join(" ");
  $("says").replaceChildren(...text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part)));  // names
  const worth = found.helps.filter((each) => each.factor > 1.005).slice(0, 4);
  if (!worth.length) return $("helps").replaceChildren();
  const items = worth.map((each) => {
    const gained = each.measure?.value ? `${amount(each.measure.value, each.measure.unit)}, ${each.factor.toPrecision(3)}x better` : `${seconds(each.seconds)}, ${each.factor.toPrecision(3)}x faster`;
    const said = each.path && turn(each.path);
    const name = said ? el("button", { className: "plain", onclick: said }, each.text) : each.text;
    return el("li", {}, name, `: ${gained}`);
  });
  $("helps").replaceChildren(el("h3", {}, "What would help"), el("ul", {}, ...items));
}

/** Show the difference from the pinned run, in total and by cause. */
function difference(pinned, run) {
  $("difference").hidden = !pinned;
  if (!pinned) return $("difference").replaceChildren();
  const causes = new Map();
  for (const [cause, time] of pinned.bounds) causes.set(cause, [time, 0]);
  for (const [cause, time] of run.bounds) causes.set(cause, [causes.get(cause)?.[0] || 0, time]);
  const rows = [...causes].map(([cause, [before, now]]) => [cause, before, now, now - before]).sort((one, other) => Math.abs(other[3]) - Math.abs(one[3]));
  const most = Math.max(...rows.map((row) => Math.abs(row[3])), 1e-15);
  const kept = run.measure ? [] : rows.filter((row) => Math.abs(row[3]) > 0.002 * Math.max(run.seconds, pinned.seconds)).slice(0, 6);
  const settings = pinned.settings.map(([path, text]) => `${path.split(".").slice(-2).join(" ")} = ${text}`).join(", ") || "unchanged";
  const head = el("p", {}, "Pinned: ", el("b", {}, told(pinned)), ` (${settings}). This run is `, el("b", {}, against(pinned, run)), ".");
  $("difference").replaceChildren(head, ...(kept.length ? [table(kept, most)] : []));
}

function table(rows, most) {
  const { of } = colours();
  const body = rows.map(([cause, before, now, gain]) => {
    const bar = el("i", { className: gain < 0 ? "gain" : "loss" });
    bar.style.width = `${(Math.abs(gain) / most) * 50}%`;
    bar.style.background = of(gain < 0 ? "good" : "bad");
    const signed = `${gain < 0 ? "−" : "+"}${seconds(Math.abs(gain))}`;
    return el("tr", {}, el("th", { scope: "row" }, cause), ...[seconds(before), seconds(now), signed].map((text) => el("td", { className: "number" }, text)), el("td", { className: "change" }, bar));
  });
  const head = ["time on the critical path", "pinned", "now", "difference", ""].map((text) => el("th", { scope: "col" }, text));
  return el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}
