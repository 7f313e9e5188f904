// The spans of the timeline as a table: for those who do not see a canvas, and for those who want the numbers.
import { TICKS } from "./timeline.js";
import { $, el, seconds } from "./words.js";

const ROWS = 300;
let run = null, hidden = true;

/** Take note of the run; the table is written only while it is open. */
export function show(found, isHidden) {
  run = found;
  hidden = isHidden;
  if ($("spans").open) write();
}

export const wire = () => $("spans").addEventListener("toggle", () => $("spans").open && run && write());

function write() {
  if (hidden) return $("spans-table").replaceChildren(el("p", {}, "Hidden until you reveal the answer."));
  const rows = [], scale = (run.part[1] - run.part[0]) / TICKS, critical = new Set(run.path.map((piece) => piece[6]));
  for (const lane of run.lanes)
    for (let at = 0; at < lane.at.length && rows.length < 50_000; at++)
      rows.push([run.part[0] + lane.at[at] * scale, lane.long[at] * scale, ((lane.wait?.[at] || 0) + (lane.inside?.[at] || 0)) * scale, lane, at]);
  rows.sort((one, other) => one[0] - other[0]);
  const body = rows.slice(0, ROWS).map(([start, long, waits, lane, at]) =>
    el("tr", {}, el("th", { scope: "row" }, run.names[lane.name_of[at]]), el("td", {}, lane.times > 1 ? `${lane.name} × ${lane.times}` : lane.name),
      ...[start, long, waits].map((value) => el("td", { className: "number" }, seconds(value, 4))), el("td", {}, critical.has(lane.op[at]) ? "yes" : "")));
  const head = ["op", "lane", "starts", "takes", "of which waiting", "critical"].map((name) => el("th", { scope: "col" }, name));
  const said = rows.length > ROWS ? `The first ${ROWS} of ${rows.length.toLocaleString("en")} visible spans by start time; zoom in for others.` : `${rows.length} spans by start time.`;
  $("spans-table").replaceChildren(el("table", {}, el("caption", {}, said), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}
