// The two files in editors that mark mistakes in place; a plain field where the editor's module cannot be had.
import { state } from "./state.js";
import { $, el } from "./words.js";

export const FILES = ["machine", "workload"];
const views = {};
let shown = "machine";

/** Make both editors; `changed(which)` is called when a hand changed a text. */
export async function make(changed, readOnly = false) {
  const modules = readOnly ? null : await import("./codemirror.js").catch(() => null);
  for (const which of FILES) {
    const place = el("div", { className: "file" }), inner = el("div");
    place.append(inner);
    place.setAttribute("role", "tabpanel");
    place.setAttribute("aria-labelledby", `tab-${which}`);
    $("editor").append(place);
    const typed = (text) => {
      state[which] = text;
      changed(which);
    };
    views[which] = { place, ...(modules ? rich(modules, inner, which, typed) : plain(inner, which, typed, readOnly)) };
    $(`tab-${which}`).onclick = () => tab(which);
  }
  $("tab-machine").parentElement.onkeydown = (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    tab(shown === "machine" ? "workload" : "machine");
    $(`tab-${shown}`).focus();
  };
  tab("machine");
}

/** Show one of the files. */
export function tab(which) {
  shown = which;
  for (const one of FILES) {
    $(`tab-${one}`).setAttribute("aria-selected", String(one === which));
    $(`tab-${one}`).tabIndex = one === which ? 0 : -1;
    views[one].place.hidden = one !== which;
  }
  views[which].measure();
}

/** Put the state's texts into the editors. */
export const put = () => FILES.forEach((which) => views[which].put(state[which]));

/** While the answer is hidden the files are shown without comments and `expect`, which may tell it, and cannot be written to. */
export function cover(hidden) {
  $("editor").classList.toggle("covered", hidden);
  for (const which of FILES) {
    const { place } = views[which], own = place.querySelector("pre");
    own?.remove();
    if (hidden) place.append(el("pre", { tabIndex: 0, ariaLabel: `the ${which}, without comments and expect` }, untold(state[which])));
  }
}

function untold(text) {
  const lines = text.split("\n").map(uncommented), kept = [];
  let inside = false;
  for (const line of lines) {
    if (/^\S/.test(line)) inside = /^["']?expect["']?\s*:/.test(line);
    if (!inside && line.trim()) kept.push(line.trimEnd());
  }
  return `${kept.join("\n")}\n\n(comments and expect are hidden until you reveal the answer)`;
}

/** A line of YAML without its comment: from a # at its begin or after a blank, outside of quotes. */
function uncommented(line) {
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const each = line[at];
    if (quote) quote = each === quote ? "" : quote;
    else if (each === "#" && (at === 0 || /\s/.test(line[at - 1]))) return line.slice(0, at);
    else if (/["']/.test(each) && /(^|[\s[{,:])$/.test(line.slice(0, at))) quote = each;
  }
  return line;
}

/** List the mistakes and mark those with a place; a click goes there. */
export function mark(mistakes) {
  for (const which of FILES) {
    const own = mistakes.filter((each) => each.file === which);
    views[which].mark(own.filter((each) => each.line > 0));
    $(`tab-${which}`).classList.toggle("wrong", own.length > 0);
  }
  $("mistakes").replaceChildren(
    ...mistakes.slice(0, 8).map((each) => {
      const where = each.line ? `${each.file}, line ${each.line}: ` : each.path ? `${each.path}: ` : "";
      const go = () => (tab(each.file), views[each.file].go(each));
      const said = each.line && FILES.includes(each.file) ? el("button", { className: "plain", onclick: go }, where + each.text) : where + each.text;
      return el("li", {}, said, ...(each.hint ? [el("small", {}, each.hint)] : []));
    }),
    ...(mistakes.length > 8 ? [el("li", {}, `${mistakes.length - 8} more`)] : []),
  );
}

function plain(place, which, typed, readOnly) {
  const field = el("textarea", { spellcheck: false, readOnly, ariaLabel: `the ${which} as YAML`, oninput: () => typed(field.value) });
  place.append(field);
  const go = ({ line }) => {
    const from = field.value.split("\n").slice(0, line - 1).join("\n").length;
    field.focus();
    field.setSelectionRange(from, from);
  };
  return { put: (text) => (field.value = text), mark: () => {}, measure: () => {}, go };
}

function rich(cm, place, which, typed) {
  const { tags } = cm;
  const look = cm.HighlightStyle.define([
    { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--strong)" },
    { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
    { tag: [tags.punctuation, tags.separator], color: "var(--soft)" },
  ]);
  let quiet = false;
  const view = new cm.EditorView({
    parent: place,
    extensions: [
      cm.EditorView.cspNonce.of(document.querySelector("meta[name=csp-nonce]").content),
      cm.lineNumbers(), cm.history(), cm.drawSelection(), cm.highlightActiveLine(), cm.yaml(), cm.syntaxHighlighting(look), cm.lintGutter(), cm.EditorView.lineWrapping,
      cm.keymap.of([...cm.defaultKeymap, ...cm.historyKeymap]),
      cm.EditorView.contentAttributes.of({ "aria-label": `the ${which} as YAML` }),
      cm.EditorView.updateListener.of((update) => update.docChanged && !quiet && typed(update.state.doc.toString())),
    ],
  });
  const place_ = ({ line, column }) => {
    const at = view.state.doc.line(Math.min(line, view.state.doc.lines)), from = Math.min(at.to, at.from + Math.max(0, column - 1));
    const word = /^[^\s:,{}[\]#]+/.exec(view.state.sliceDoc(from, at.to))?.[0].length || at.to - from;
    return { from: from === at.to ? at.from : from, to: from === at.to ? at.to : from + word };
  };
  return {
    put: (text) => {
      if (text === view.state.doc.toString()) return;
      quiet = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      quiet = false;
    },
    mark: (mistakes) => view.dispatch(cm.setDiagnostics(view.state, mistakes.map((each) => ({ ...place_(each), severity: "error", message: each.text + (each.hint ? `\n${each.hint}` : "") })))),
    measure: () => view.requestMeasure(),
    go: (each) => {
      view.focus();
      view.dispatch({ selection: { anchor: place_(each).from }, scrollIntoView: true });
    },
  };
}
