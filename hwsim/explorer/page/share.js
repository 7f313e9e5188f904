// Exports: address, command, picture as SVG or PNG, both files, and an offline page.
import { ask, isSaved } from "./asking.js";
import { picturePart } from "./machine.js";
import { fitted, SvgPaper } from "./paper.js";
import { sliders } from "./sliders.js";
import { asked, fragment, keep, state } from "./state.js";
import { draw, laidOut } from "./timeline.js";
import { $, against, causeTint, colours, download, el, isHatched, percent, seconds, told } from "./words.js";

const WIDE = 1280, EDGE = 32;

/** Wire the menu; `page` tells the run shown, the pinned one and whether the answer is hidden. */
export function wire(page) {
  const doing = (id, work) => ($(id).onclick = () => Promise.resolve(work()).catch(page.troubled));
  const picture = (work) => () => {
    if (page.hidden()) throw new Error("A picture would show the answer: reveal it first.");
    if (page.run()) return work(figure(page.run(), page.pinned()));
  };
  const name = () => page.run()?.workload.replace(/[^\w-]+/g, "-").slice(0, 60) || "run";
  doing("link", async () => (await keep(), copy("link", location.href)));
  doing("command", async () => copy("command", `hwsim explore --state '${await fragment()}'`));
  doing("svg", picture((svg) => download(`${name()}.svg`, "image/svg+xml", svg)));
  doing("png", picture(async (svg) => download(`${name()}.png`, "image/png", await raster(svg))));
  doing("yaml", async () => {
    const found = await ask("exported", asked());
    if (found.mistakes) throw new Error(found.mistakes[0].text);
    for (const which of ["machine", "workload"]) download(`${which}.yaml`, "text/yaml", found[which]);
  });
  doing("html", () => axes());
  doing("compute", () => save(name()));
  $("cancel").onclick = () => $("saving").close();
  for (const id of ["html", "yaml", "command"]) $(id).hidden = isSaved();
}

async function copy(id, text) {
  const before = $(id).dataset.words || $(id).textContent;
  $(id).dataset.words = before;
  try {
    await navigator.clipboard.writeText(text);
    $("spoken").textContent = "copied";
  } catch {
    $("notice").replaceChildren("The browser does not allow copying. Copy this text:", el("textarea", { readOnly: true, value: text }));
    $("notice").hidden = false;
  }
}

const wrapped = (text, many) => text.match(new RegExp(`.{1,${many}}(?:\\s|$)|\\S{1,${many}}`, "g")) || [];

/** The answer, the timeline and the machine as one SVG in the colours of the page. */
export function figure(run, pinned) {
  const theme = colours(), place = laidOut(run, pinned, WIDE - 2 * EDGE), head = [], soft = theme.of("soft");
  const settings = run.settings.map(([path, text]) => `${path} = ${text}`).join(", ");
  let y = 44;
  const line = (text, look, step) => (head.push([EDGE, y, text, look]), (y += step));
  line(`${told(run)}${run.measure ? ` · ${run.measure.name}` : ""}${run.interval ? ` (90 % interval ${seconds(run.interval.low)}–${seconds(run.interval.high)})` : ""}`, { size: 26, weight: 700 }, 34);
  for (const text of wrapped($("says").textContent || run.text, 150).slice(0, 2)) line(text, { size: 16 }, 22);
  for (const text of wrapped(`${run.workload} on ${run.machine}${settings ? ` · ${settings}` : ""}`, 160).slice(0, 4)) line(text, { size: 14, fill: soft }, 20);
  const isDrawn = run.lanes.length > 0;
  if (pinned) line(`${isDrawn ? "thin rows: pinned" : "Pinned"}, ${told(pinned)} (${pinned.settings.map((pair) => pair.join(" = ")).join(", ") || "as in the files"}); this run is ${against(pinned, run)}`, { size: 14, fill: soft }, 20);
  if ($("limits-of").textContent) line($("limits-of").textContent, { size: 14, fill: soft }, 20);
  const bars = y - 6, legend = y + 42, families = y + 66, top = y + 84, machine = picturePart(EDGE, top + place.tall + 20, WIDE - 2 * EDGE);
  const paper = new SvgPaper(WIDE, Math.ceil(top + place.tall + machine.high + 40), theme);
  for (const [x, at, text, look] of head) paper.text(x, at, text, look);
  let from = EDGE, key = EDGE;
  for (const [cause, , share] of run.bounds.filter(([, , part]) => part >= 0.005)) {
    const tint = theme.tints[causeTint(cause)], words = `${cause} ${percent(share)}`;
    const piece = (...box) => {
      paper.rects(box, tint);
      if (isHatched(cause)) paper.hatch(box, theme.of("card"));
    };
    piece(from, bars, Math.max(1, share * (WIDE - 2 * EDGE) - 1), 22);
    from += share * (WIDE - 2 * EDGE);
    if (key + words.length * 8 > WIDE - EDGE) continue;
    piece(key, legend - 6, 12, 12);
    paper.text(key + 18, legend, words);
    key += words.length * 7.6 + 44;
  }
  key = EDGE;
  for (const [family, tint] of run.families) {
    paper.rects([key, families - 6, 12, 12], theme.tints[tint]);
    paper.text(key + 18, families, fitted(family, 260, 13), { fill: soft, size: 13 });
    key += Math.min(family.length, 36) * 7.4 + 40;
  }
  if (isDrawn) paper.text(WIDE - EDGE, families, "black line: critical path", { fill: soft, size: 13, align: "right" });
  const inner = new SvgPaper(WIDE - 2 * EDGE, place.tall, theme);
  draw(inner, place, { step: state.step, theme });
  const placed = inner.whole().replace("<svg ", `<svg x="${EDGE}" y="${top}" `);
  return paper.whole(placed, machine.text);
}

/** The SVG as a PNG of twice its size. */
async function raster(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), image = new Image();
  try {
    await new Promise((done, failed) => Object.assign(image, { onload: done, onerror: () => failed(new Error("The browser cannot draw the picture.")), src: address }));
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** The dialog that chooses the sliders of a saved page: those turned, then the first ones. */
function axes() {
  const all = sliders(), first = [...all.filter((one) => one.path in state.set), ...all.filter((one) => one.group !== "parts")].slice(0, 9);
  const chosen = [...new Set(first.map((one) => one.path))].slice(0, 3);
  $("axes").replaceChildren(
    ...[0, 1, 2].map((at) => {
      const options = [el("option", { value: "" }, "none"), ...all.map((one) => el("option", { value: one.path, selected: one.path === chosen[at] }, `${one.label} (${one.text})`))];
      return el("label", {}, `Slider ${at + 1}`, el("select", {}, ...options));
    }),
  );
  $("progress").textContent = "";
  $("saving").showModal();
}

async function save(name) {
  const paths = [...new Set([...$("axes").querySelectorAll("select")].map((each) => each.value).filter(Boolean))];
  if (!paths.length) return void ($("progress").textContent = "Select at least one slider.");
  const steps = paths.length === 3 ? 9 : paths.length === 2 ? 15 : 25, began = Date.now();
  const said = setInterval(() => ($("progress").textContent = `${(steps ** paths.length).toLocaleString("en")} runs at most, ${Math.round((Date.now() - began) / 1000)} s elapsed.`), 500);
  $("compute").disabled = true;
  try {
    const found = await ask("saved", { ...asked(), paths, film: state.film });
    if (found.stale || found.mistakes) throw new Error(found.mistakes?.[0].text ?? "interrupted by a newer request: compute again");
    download(`${name}.html`, "text/html", found.text);
    $("progress").textContent = `Saved: ${found.contents}, ${Math.round(found.text.length / 1024).toLocaleString("en")} KiB.`;
  } catch (error) {
    $("progress").textContent = error.message;
  } finally {
    clearInterval(said);
    $("compute").disabled = false;
  }
}
