// Questions to the server: at most one run under way and one wish; a page that was saved asks its own grid.

let saved = null;

/** Answer every question from `door(name, body)`: the page was saved with its answers. */
export const answerFrom = (door) => (saved = door);
export const isSaved = () => saved !== null;

export class Unanswered extends Error {}

/** The answer to a question; an error in words where there is none. */
export async function ask(name, body = {}) {
  if (saved) return saved(name, body);
  let found;
  try {
    found = await fetch(`/ask/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Unanswered("The server does not respond. Run `hwsim explore` again and open its address followed by:");
  }
  if (found.ok) return found.json();
  if (found.status === 401)
    throw new Unanswered("The server was restarted. Open its address followed by:");
  throw new Error(await found.text());
}

/** `work`, one call at a time: what is wished meanwhile is done once, as it was wished last. */
export function newest(work) {
  let busy = false, wish = null;
  const call = async (...given) => {
    wish = given;
    if (busy) return;
    busy = true;
    try {
      while (wish) {
        const now = wish;
        wish = null;
        await work(...now);
      }
    } finally {
      busy = false;
    }
  };
  call.busy = () => busy;
  return call;
}

/** `work` once the hand has rested for `wait` milliseconds; a later call begins the wait anew. */
export function rested(wait, work) {
  let timer = 0;
  const call = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
  call.stop = () => clearTimeout(timer);
  return call;
}
