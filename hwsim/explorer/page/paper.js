// One way to draw on two kinds of paper: the canvas of the page and the SVG of a slide.
import { ink } from "./words.js";

const TILE = 7;

/** A canvas; `ratio` is the number of its pixels for one of the page. */
export class CanvasPaper {
  constructor(canvas, wide, high, theme, ratio = devicePixelRatio || 1) {
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    this.context = canvas.getContext("2d");
    this.context.scale(ratio, ratio);
    this.context.textBaseline = "middle";
    this.theme = theme;
  }
  /** Many rectangles [x, y, width, height, ...] of one colour in one call. */
  rects(list, fill, alpha = 1) {
    const path = new Path2D();
    for (let at = 0; at < list.length; at += 4) path.rect(list[at], list[at + 1], list[at + 2], list[at + 3]);
    this.context.globalAlpha = alpha;
    this.context.fillStyle = fill;
    this.context.fill(path);
    this.context.globalAlpha = 1;
  }
  hatch(list, tint) {
    const tile = new OffscreenCanvas(TILE, TILE).getContext("2d");
    tile.strokeStyle = tint;
    tile.lineWidth = 2;
    tile.beginPath();
    for (const shift of [-TILE, 0, TILE]) (tile.moveTo(shift, TILE), tile.lineTo(shift + TILE, 0));
    tile.stroke();
    this.rects(list, this.context.createPattern(tile.canvas, "repeat"), 0.8);
  }
  /** Lines [[x, y, x, y, ...], ...] of one colour. */
  lines(lines, stroke, width = 1, dash = []) {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.lineJoin = "round";
    this.context.setLineDash(dash);
    this.context.beginPath();
    for (const line of lines) {
      this.context.moveTo(line[0], line[1]);
      for (let at = 2; at < line.length; at += 2) this.context.lineTo(line[at], line[at + 1]);
    }
    this.context.stroke();
    this.context.setLineDash([]);
  }
  dot(x, y, radius, fill) {
    this.context.fillStyle = fill;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 7);
    this.context.fill();
  }
  text(x, y, words, { fill = "", align = "left", size = 14, weight = 400 } = {}) {
    this.context.font = `${weight} ${size}px ${this.theme.font}`;
    this.context.fillStyle = fill || this.theme.of("ink");
    this.context.textAlign = align;
    this.context.fillText(words, x, y);
  }
}

const plain = (text) => String(text).replace(/[&<>"\u0000-\u001f]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each] || " ");
const short = (value) => String(Math.round(value * 100) / 100);

/** The same as text: an SVG. */
export class SvgPaper {
  constructor(wide, high, theme) {
    Object.assign(this, { wide, high, theme, parts: [], patterns: new Map() });
  }
  rects(list, fill, alpha = 1) {
    let path = "";
    for (let at = 0; at < list.length; at += 4)
      path += `M${short(list[at])} ${short(list[at + 1])}h${short(list[at + 2])}v${short(list[at + 3])}h${short(-list[at + 2])}z`;
    if (path) this.parts.push(`<path d="${path}" fill="${fill}"${alpha < 1 ? ` fill-opacity="${alpha}"` : ""}/>`);
  }
  hatch(list, tint) {
    const name = this.patterns.get(tint)?.name || `hatch${this.patterns.size}`;
    const lines = `<path d="M-2 9L9 -2M-2 2L2 -2M5 9L9 5" stroke="${tint}" stroke-width="2"/>`;
    this.patterns.set(tint, { name, text: `<pattern id="${name}" width="7" height="7" patternUnits="userSpaceOnUse">${lines}</pattern>` });
    this.rects(list, `url(#${name})`, 0.8);
  }
  lines(lines, stroke, width = 1, dash = []) {
    const path = lines.map((line) => line.map((value, at) => (at % 2 ? " " : at ? "L" : "M") + short(value)).join("")).join("");
    const dashed = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    if (path) this.parts.push(`<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${width}" stroke-linejoin="round"${dashed}/>`);
  }
  dot(x, y, radius, fill) {
    this.parts.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${radius}" fill="${fill}"/>`);
  }
  text(x, y, words, { fill = "", align = "left", size = 14, weight = 400 } = {}) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const look = `fill="${fill || this.theme.of("ink")}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}"`;
    this.parts.push(`<text x="${short(x)}" y="${short(y + size * 0.35)}" ${look}>${plain(words)}</text>`);
  }
  /** The whole picture; `inner`: SVG to put at (x, y). */
  whole(...inner) {
    const patterns = [...this.patterns.values()].map((each) => each.text).join("");
    const size = `width="${this.wide}" height="${this.high}" viewBox="0 0 ${this.wide} ${this.high}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${plain(this.theme.font.replaceAll('"', "'"))}">` +
      `<defs>${patterns}</defs><rect width="100%" height="100%" fill="${this.theme.of("card")}"/>${this.parts.join("")}${inner.join("")}</svg>`
    );
  }
}

/** As many characters as fit into `room` pixels, with an ellipsis where some are left out. */
export function fitted(words, room, size = 14) {
  const many = Math.floor(room / (size * 0.56));
  return words.length <= many ? words : many < 3 ? "" : `${words.slice(0, many - 1)}…`;
}

export { ink };
