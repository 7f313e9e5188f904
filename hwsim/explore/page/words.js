// Elements, numbers as people read them, ink on a colour: what every module of the page uses.

export const $ = (id) => document.getElementById(id);

export function el(tag, more = {}, ...inner) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(more)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];

/** A time as people read it, three digits: 175 ms, 2.50 h. */
export function seconds(value, digits = 3) {
  if (!value) return "0 s";
  if (value < 0) return `−${seconds(-value, digits)}`;
  if (value >= 172800) return `${rounded(value / 86400, digits)} days`;
  if (value >= 7200) return `${rounded(value / 3600, digits)} h`;
  if (value >= 120) return `${rounded(value / 60, digits)} min`;
  const [size, unit] = UNITS.find(([each]) => value >= each * 0.9995) || UNITS.at(-1);
  return `${rounded(value / size, digits)} ${unit}`;
}

export function rounded(value, digits = 3) {
  return Math.abs(value) >= 10 ** digits * 0.9995 ? Math.round(value).toLocaleString("en") : value.toPrecision(digits);
}

/** Seconds of a text such as "200 ms" or "1.5 min"; null where it is none. */
export function readSeconds(text) {
  const found = /^\s*([0-9.]+(?:e[+-]?\d+)?)\s*(ps|ns|us|µs|ms|s|min|h|days?)?\s*$/i.exec(text.replace(",", "."));
  if (!found) return null;
  const size = { ps: 1e-12, ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, day: 86400, days: 86400 };
  const value = Number(found[1]) * size[(found[2] || "s").toLowerCase()];
  return value > 0 ? value : null;
}

/** Round instants of an axis from `from` to `to`, about `many` of them. */
export function instants(from, to, many) {
  const rough = (to - from) / many || 1, power = 10 ** Math.floor(Math.log10(rough));
  const every = power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(from / every); at * every <= to * 1.000001; at++) found.push(at * every);
  return found;
}

/** An instant of an axis, without zeros that say nothing. */
export const instant = (value) => (value ? seconds(value, 6).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ") : "0");

export const percent = (share) => (share > 0 && share < 0.0995 ? `${(share * 100).toPrecision(2)} %` : `${Math.round(share * 100)} %`);

/** "1.23 times as fast", in words that hold both ways. */
export function against(before, now) {
  if (Math.abs(before / now - 1) < 0.0005) return "as fast";
  return before > now ? `${rounded(before / now)} times as fast` : `${rounded(now / before)} times as slow`;
}

/** Colours of the theme by name, resolved. */
export function colours() {
  const css = getComputedStyle(document.documentElement), of = (name) => css.getPropertyValue(`--${name}`).trim();
  return { of, tints: [...Array(8).keys()].map((at) => of(`c${at}`)), font: getComputedStyle(document.body).fontFamily };
}

const causes = new Map();

/** The colour of a cause: by first appearance, so that it stays while a slider moves. */
export function causeTint(cause) {
  if (!causes.has(cause)) causes.set(cause, Math.min(causes.size, 7));
  return causes.get(cause);
}

/** Black or white, whichever is read better on a colour (WCAG's relative luminance). */
export function ink(hex) {
  const part = (at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.179 ? "#000000" : "#ffffff";
}

export function download(name, kind, content) {
  const address = URL.createObjectURL(new Blob([content], { type: kind }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
