// The predictions of a class: pasted lines become a histogram of times, and counts of limits and changes; nothing leaves the page.
import { state, unpacked } from "./state.js";
import { SvgPaper } from "./paper.js";
import { $, amount, colours, counted, el, instant, readAmount, unit, value } from "./words.js";

const WIDE = 640, HIGH = 190, FOOT = 34, BINS = 4; // bins for each doubling
let run = null, hidden = true, guesses = [];

export function wireClass() {
  $("handed-in").oninput = async () => {
    const lines = $("handed-in").value.split("\n").map(handedIn);
    guesses = (await Promise.all(lines)).filter(Boolean);
    draw();
  };
}

/** The prediction in a line: the state of an address, or what "Copy my prediction" copied; a chapter's line has one for each piece. */
async function handedIn(line) {
  const own = state.piece && new RegExp(`[#&]${state.piece.name}=1\\.([\\w-]+)`).exec(line), found = own || /#1\.([\w-]+)/.exec(line);
  if (!found) return null;
  try {
    const read = JSON.parse(await unpacked(found[1]));
    return typeof read.guess?.time === "string" && (!read.name || read.name === state.piece?.name) ? read.guess : null;
  } catch {
    return null;
  }
}

/** Show what was collected beside this run; while the answer is hidden, only how many there are. */
export function showClass(ofRun, isHidden) {
  run = ofRun;
  hidden = isHidden;
  if (guesses.length) draw();
}

function draw() {
  const said = el("p", {}, counted(guesses.length, "prediction"), hidden ? ". They are shown with the answer." : ".");
  if (hidden || !guesses.length) return $("histogram").replaceChildren(said);
  const asks = unit(run), times = guesses.map(({ time }) => readAmount(time, asks)).filter((time) => time !== null);
  $("histogram").replaceChildren(said, ...(times.length ? [histogram(times, asks)] : []), ...tally("limit", "What limits it"), ...tally("change", "The most effective change"));
}

/** Times on a logarithmic axis; the answer and the theories behind wrong times as lines. */
function histogram(times, asks) {
  const theme = colours(), bin = (time) => Math.floor(Math.log2(time) * BINS), real = value(run), lines = [...(real ? [[real, "answer"]] : []), ...(run.theories || []).map(([name, time]) => [time, name.split(":")[0]])];
  const all = [...times, ...lines.map(([time]) => time)].map(bin), first = Math.min(...all) - 1, last = Math.max(...all) + 2, counts = new Map();
  for (const time of times) counts.set(bin(time), (counts.get(bin(time)) || 0) + 1);
  const most = Math.max(...counts.values()), x = (place) => 10 + ((place - first) / (last - first)) * (WIDE - 20), top = 18 + 15 * lines.length, y = (count) => HIGH - FOOT - (count / most) * (HIGH - FOOT - top);
  const paper = new SvgPaper(WIDE, HIGH, theme), ink = theme.of("ink"), soft = theme.of("soft");
  for (const [place, count] of counts) {
    paper.rects([x(place), y(count), x(place + 1) - x(place) - 2, HIGH - FOOT - y(count)], theme.tints[0]);
    paper.text((x(place) + x(place + 1)) / 2, y(count) - 8, `${count}`, { fill: ink, align: "center", size: 13 });
  }
  paper.lines([[10, HIGH - FOOT, WIDE - 10, HIGH - FOOT]], soft);
  for (const [at, [time, name]] of lines.sort((one, other) => one[0] - other[0]).entries()) {
    const px = x(Math.log2(time) * BINS), isRight = px > WIDE * 0.55, answer = name === "answer";
    paper.lines([[px, 12 + 15 * at, px, HIGH - FOOT]], theme.of(answer ? "glow" : "soft"), answer ? 3 : 1.5);
    paper.text(px + (isRight ? -6 : 6), 12 + 15 * at, `${name}, ${amount(time, asks)}`, { fill: answer ? ink : soft, size: 13, weight: answer ? 700 : 400, ...(isRight ? { align: "right" } : {}) });
  }
  for (let place = first + 1; place < last; place += Math.max(BINS, BINS * Math.ceil((last - first) / BINS / 8))) {
    const time = Number((2 ** (place / BINS)).toPrecision(2));
    paper.text(x(Math.log2(time) * BINS), HIGH - FOOT + 16, asks === "s" ? instant(time, time) : amount(time, asks), { fill: soft, align: "center", size: 13 });
  }
  const image = el("img", { alt: `${counted(times.length, "time")}: ${[...times].sort((one, other) => one - other).map((time) => amount(time, asks)).join(", ")}` });
  image.src = `data:image/svg+xml,${encodeURIComponent(paper.whole())}`;
  return image;
}

function tally(what, title) {
  const counts = new Map();
  for (const guess of guesses) if (typeof guess[what] === "string" && guess[what]) counts.set(guess[what], (counts.get(guess[what]) || 0) + 1);
  if (!counts.size) return [];
  const rows = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 8), most = rows[0][1];
  return [el("h3", {}, title), el("ul", { className: "tally" }, ...rows.map(([name, count]) => {
    const bar = el("i");
    bar.style.width = `${(count / most) * 40}%`;
    return el("li", {}, bar, el("b", {}, `${count}`), ` ${name}`);
  }))];
}
