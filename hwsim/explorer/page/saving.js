// Writes an offline page: the modules and styles of this page, and the answers over a grid, in one file.
import { ask } from "./asking.js";
import { sliders } from "./sliders.js";
import { asked, packed, state } from "./state.js";

const POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:";

const text = async (name) => (await fetch(name)).text();
const checked = (found) => {
  if (found.mistakes) throw new Error(found.mistakes.map((each) => each.text).join("; "));
  if (found.stale) throw new Error("interrupted by a newer request: compute again");
  return found;
};

/** The page's text for sliders of these paths, and what it holds in words. */
export async function written(paths, steps, run) {
  const grid = checked(await ask("grid", { ...asked(), paths, steps }));
  const more = checked(await ask("more", asked())), pictures = {};
  for (const [key, found] of Object.entries(grid.runs)) {
    if (found.picture in pictures) continue;
    pictures[found.picture] = checked(await ask("picture", { ...asked(), set: { ...state.set, ...settings(grid, key) } }));
  }
  const films = await filmed(grid, (at) => ({ ...state.set, ...settings(grid, at) }));
  const own = Object.fromEntries(sliders().map((one) => [one.path, one]));
  const turned = grid.axes.map((axis) => ({ ...own[axis.path], ...axis, group: "parameters", text: axis.values[axis.at] }));
  const content = { state: { ...state, set: fixed(paths), pinned: null, guess: null, part: [0, 1], curve: paths[0] }, grid, more, pictures, films, sliders: turned, base: run };
  const many = grid.answers.filter((each) => each !== null).length;
  return [await page(await packed(JSON.stringify(content))), `${many} answers, ${Object.keys(grid.runs).length} timelines${grid.stopped ? "; stopped at the time limit, others are missing" : ""}`];
}

/** What is set at a point of the grid: nothing of the axes on which it stands at the page's own values. */
const settings = (grid, key) => Object.fromEntries(key.split(",").flatMap((at, axis) => (Number(at) === grid.axes[axis].at ? [] : [[grid.axes[axis].path, grid.axes[axis].values[at]]])));

/** Animations: all that the run has at the page's own values, and along the axes the one that is open. */
async function filmed(grid, set) {
  const own = grid.axes.map((axis) => axis.at).join(","), scenes = {};
  const film = async (key, scene, listed) => {
    const found = await ask("animated", { ...asked(), set: set(key), scene, listed });
    if (found.scene) scenes[`${found.kind} ${key}`] = { scene: found.scene, text: found.text };
    return found;
  };
  const first = checked(await film(own, state.film === "first" ? "" : state.film, true));
  for (const [kind, , why] of first.kinds) if (!why && kind !== first.kind) await film(own, kind, false);
  for (const key of Object.keys(grid.runs)) if (state.film && key !== own) await film(key, first.kind, false);
  return { kind: first.kind, kinds: first.kinds, scenes };
}

/** Settings beside those of the grid's sliders: they stay. */
const fixed = (paths) => Object.fromEntries(Object.entries(state.set).filter(([path]) => !paths.includes(path)));

/** One text: each module as a data address named by an import map, as a page opened from a file may import no others. */
async function page(content) {
  const modules = {}, open = ["app.js"];
  while (open.length) {
    const name = open.pop();
    if (name in modules) continue;
    modules[name] = await text(`/page/${name}`);
    for (const [, other] of modules[name].matchAll(/from "\.\/([\w.]+)"/g)) open.push(other);
  }
  const named = Object.entries(modules).map(([name, code]) => [`hwsim/${name}`, `data:text/javascript;base64,${base64(code.replaceAll('from "./', 'from "hwsim/'))}`]);
  const look = `<style>${await text("/page/look.css")}${await text("/page/parts.css")}</style>`;
  const script = `<script type="importmap">${JSON.stringify({ imports: Object.fromEntries(named) })}</script>\n<script type="module">import "hwsim/app.js";</script>`;
  const put = (whole, from, to) => whole.replace(from, () => to);
  let found = await text("/");
  found = put(found, /<link rel="stylesheet"[^>]*look\.css">/, look);
  found = put(found, /<link rel="stylesheet"[^>]*parts\.css">\n/, "");
  found = put(found, /<meta name="csp-nonce"[^>]*>/, `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`);
  return put(found, /<script type="module"[^>]*><\/script>/, `<script type="text/plain" id="saved">${content}</script>\n${script}`);
}

function base64(code) {
  const bytes = new TextEncoder().encode(code);
  let found = "";
  for (let at = 0; at < bytes.length; at += 8192) found += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(found);
}
