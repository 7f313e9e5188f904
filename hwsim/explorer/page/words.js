// Elements, numbers as people read them, ink on a colour: what every module of the page uses.

export const $ = (id) => document.getElementById(id);

export function el(tag, more = {}, ...inner) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(more)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

/** "1 op", "12,072 ops". */
export const counted = (many, thing) => `${many.toLocaleString("en")} ${thing}${many === 1 ? "" : "s"}`;

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

/** An interval in words, with as many digits as tell its ends apart. */
export function within({ low, high }) {
  const digits = [3, 4, 5, 6].find((each) => seconds(low, each) !== seconds(high, each)) ?? 3;
  return `90 % interval ${seconds(low, digits)}–${seconds(high, digits)}`;
}

/** A value as people read it: a time, or a rate such as "1,060/s". */
export const amount = (value, unit) => (unit === "s" ? seconds(value) : `${rounded(value)}/s`);

/** What a run is made for as a number: its time, or what is wanted of a service (null: it has no steady state). */
export const value = (run) => (run.measure ? run.measure.value : run.seconds);
export const unit = (run) => run.measure?.unit ?? "s";

/** The number of a run in words. */
export const told = (run) => (value(run) === null ? "no steady state" : amount(value(run), unit(run)));

/** A number of a file as people read it: 15000000000000.0 is 15 T; what has a unit or few digits stays as it is written. */
export const short = (text) => (/^\d{10,}(\.0*)?$/.test(text) ? new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 }).format(Number(text)) : text);

export function rounded(value, digits = 3) {
  return Math.abs(value) >= 10 ** digits * 0.9995 ? Math.round(value).toLocaleString("en") : value.toPrecision(digits);
}

/** A guess as a number in this unit; null where it is none. */
export function readAmount(text, unit) {
  if (unit === "s") return readSeconds(text);
  const found = /^\s*([0-9.,]+(?:e[+-]?\d+)?)\s*(\D*\/\s*s.*)?$/i.exec(text), number = found && Number(found[1].replaceAll(",", ""));
  return number > 0 ? number : null;
}

/** Seconds of a text such as "200 ms" or "1.5 min"; null where it is none, or has no unit. */
export function readSeconds(text) {
  const found = /^\s*([0-9.]+(?:e[+-]?\d+)?)\s*(ps|ns|us|µs|ms|s|sec|seconds?|min|h|days?)\s*$/i.exec(text.replace(",", "."));
  if (!found) return null;
  const size = { ps: 1e-12, ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, sec: 1, second: 1, seconds: 1, min: 60, h: 3600, day: 86400, days: 86400 };
  const value = Number(found[1]) * size[found[2].toLowerCase()];
  return value > 0 ? value : null;
}

/** The unit of an axis of time up to `to`, in seconds: minutes, hours and days where those are read. */
const clock = (to) => (to >= 172800 ? 86400 : to >= 7200 ? 3600 : to >= 120 ? 60 : 1);

/** Round values of an axis from `from` to `to`, about `many` of them; of a time if `size` is left out. */
export function instants(from, to, many, size = clock(to)) {
  const rough = (to - from) / many / size || 1, power = size * 10 ** Math.floor(Math.log10(rough));
  const every = power * [1, 2, 5, 10].find((each) => each * power >= rough * size * 0.999);
  const found = [];
  for (let at = Math.ceil(from / every); at * every <= to * 1.000001; at++) found.push(at * every);
  return found;
}

const CLOCK = { 60: "min", 3600: "h", 86400: "days" };

/** An instant of an axis up to `to`, without zeros that say nothing. */
export function instant(value, to) {
  if (!value) return "0";
  const size = clock(to);
  return size > 1 ? `${Number((value / size).toPrecision(5))} ${CLOCK[size]}` : seconds(value, 6).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

/** A share with two digits, as the summary writes it; what is nearly all of it is not called all. */
export function percent(share) {
  if (share > 0 && share < 0.001) return "<0.1 %";
  if (share >= 0.9945 && share < 0.99999) return `${Math.min(share * 100, 99.9).toFixed(1)} %`;
  return `${Number((share * 100).toPrecision(share < 0.995 ? 2 : 3))} %`;
}

/** "1.23x faster" or "slower"; of a rate "1.23x more". Times and rates are not compared. */
export function against(pinned, run) {
  const before = value(pinned), now = value(run), isTime = unit(run) === "s";
  if (pinned.measure?.name !== run.measure?.name) return "not comparable: the runs have different measures";
  if (before === null || now === null) return "not comparable: one run has no steady state";
  if (Math.abs(before / now - 1) < 0.0005) return isTime ? "equally fast" : "equal";
  if (!isTime) return now > before ? `${rounded(now / before)}x more` : `${rounded(before / now)}x less`;
  return before > now ? `${rounded(before / now)}x faster` : `${rounded(now / before)}x slower`;
}

/** Colours of the theme by name, resolved. */
export function colours() {
  const css = getComputedStyle(document.documentElement), of = (name) => css.getPropertyValue(`--${name}`).trim();
  return { of, tints: [...Array(8).keys()].map((at) => of(`c${at}`)), font: getComputedStyle(document.body).fontFamily };
}

const causes = new Map();

const ops = new Map();

/** Give each cause of a run, eight at most, a colour: that of its op, as the timeline has it, or one of its own, which stays while a
 * slider moves until another needs it. Those are hatched beside a timeline, as its ops have the same colours. */
export function tintCauses(run) {
  ops.clear();
  if (run.lanes.length) run.names.forEach((name, at) => ops.set(name, run.tints[at]));
  const names = run.bounds.map(([cause]) => cause).filter((cause) => ofOp(cause) === undefined);
  for (const name of names) {
    if (causes.has(name)) continue;
    const gone = causes.size < 8 ? null : [...causes.keys()].find((each) => !names.includes(each));
    const taken = new Set(causes.values()), shown = new Set(ops.values()), free = [...Array(8).keys()].filter((each) => !taken.has(each));
    const tint = gone === null ? (free.find((each) => !shown.has(each)) ?? free[0]) : causes.get(gone);
    causes.delete(gone);
    causes.set(name, tint ?? 7);
  }
}
const ofOp = (cause) => ops.get(cause.slice(0, Math.max(0, cause.lastIndexOf(" on "))));
export const causeTint = (cause) => ofOp(cause) ?? causes.get(cause) ?? 7;
export const isHatched = (cause) => ops.size > 0 && ofOp(cause) === undefined;

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
