// What the address holds: both files, what was turned, the pinned run, the guess, the window. A fragment is sent to nobody.
// `piece`: where this page is a piece of a chapter, its name and its question.

/** `called`: the names of the two files, as `expect:` may name a machine and `use:` starts at its file. */
export const state = { v: 1, machine: "", workload: "", set: {}, part: [0, 1], step: -1, pinned: null, guess: null, curve: "", theme: "", film: "", called: {}, piece: null };

/** What every question to the server carries. */
export const asked = () => ({ machine: state.machine, workload: state.workload, set: state.set, called: state.called, coloured, page: PAGE });

const PAGE = crypto.randomUUID?.() ?? `${Math.random()}`; // two pages of one server do not overtake each other
let coloured = {};
/** Take note of the colours that the server gave to ops: it gets them back with each question, so that they stay. */
export const keepColours = (given) => (coloured = given || {});

const past = [];
let touched = "";

/** Remember the settings before `path` is turned: one step back for each slider touched, not for each move of it. */
export function remember(path) {
  if (path === touched) return;
  past.push({ ...state.set });
  if (past.length > 200) past.shift();
  touched = path;
}

/** Forget what could be undone: it is of other files. */
export function forget() {
  past.length = 0;
  touched = "";
}

/** Go one slider back; false where there is nothing to go back to. */
export function undo() {
  if (!past.length) return false;
  state.set = past.pop();
  touched = "";
  return true;
}

async function through(flow, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(flow)).arrayBuffer());
}

/** A text as characters that an address may hold. */
export async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  let found = "";
  for (let at = 0; at < bytes.length; at += 8192) found += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(found).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

const without = (from) => Object.fromEntries(Object.entries(from).filter(([, value]) => value !== null && value !== "" && value !== -1));

export const fragment = async () => `#1.${await packed(JSON.stringify(without(state)))}`;

let written = "";
/** Whether the address holds what this page wrote there: else a hand put another link into it. */
export const isOwnAddress = () => location.hash === written;

/** Write the state into the address. */
export async function keep() {
  if (state.piece) return tellFrame(await packed(JSON.stringify({ v: 1, name: state.piece.name, guess: state.guess, set: state.set })));
  const found = (written = await fragment());
  try {
    history.replaceState(null, "", found);
  } catch {
    location.replace(found); // some browsers refuse the former for a page opened as a file
  }
}

/** Tell the page around a piece of a chapter how tall it is, and what was predicted in it: that page has the address. */
export function tellFrame(text = "") {
  if (parent !== window) parent.postMessage({ piece: state.piece.name, height: document.documentElement.offsetHeight, state: text, done: Boolean(state.guess?.done) }, "*");
}

/** What the page around a piece kept of it: predictions and settings. */
export async function keptByFrame() {
  const found = name.startsWith("1.") ? JSON.parse(await unpacked(name.slice(2)).catch(() => "null")) : null;
  return found?.v === 1 ? { guess: found.guess, set: texts(found.set) } : {};
}

/** What an address holds: null where it holds nothing, an error in words where it cannot be read. */
export async function kept(hash) {
  if (hash.length < 3) return null;
  const [version, ...rest] = hash.slice(1).split(".");
  if (version !== "1") throw new Error(`The address is of another version (${version.slice(0, 8)}) of the explorer.`);
  let found;
  try {
    found = JSON.parse(await unpacked(rest.join(".")));
  } catch {
    throw new Error("The address is truncated or changed: ask for the complete link.");
  }
  if (found?.v !== 1 || typeof found.machine !== "string" || typeof found.workload !== "string")
    throw new Error("The address has no state of the explorer.");
  const own = Object.fromEntries(Object.keys(state).filter((key) => key in found).map((key) => [key, found[key]]));
  return { ...own, called: texts(own.called), set: texts(own.set), part: window_(own.part), step: Number.isInteger(own.step) ? own.step : -1 };
}

const texts = (set) => Object.fromEntries(Object.entries(set || {}).map(([key, value]) => [String(key), String(value)]));
const window_ = (part) => (Array.isArray(part) && part[0] >= 0 && part[1] <= 1 && part[0] < part[1] ? [+part[0], +part[1]] : [0, 1]);
