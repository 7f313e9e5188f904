// Pieces are frames of the explorer's own page, made when they come near; what was predicted in each is kept in this page's address.
const frame = JSON.parse(document.getElementById("frame").textContent), kept = new Map(), frames = new Map();
for (const [, name, state] of location.hash.matchAll(/[#&](\w+)=(1\.[\w-]+)/g)) kept.set(name, state);

function make(place) {
  const { piece, title } = place.dataset, made = document.createElement("iframe");
  made.title = title;
  made.name = kept.get(piece) || "";
  made.srcdoc = frame.replace("SAVED", () => document.querySelector(`[data-content="${piece}"]`).textContent);
  made.style.height = `${place.offsetHeight}px`;
  frames.set(piece, made);
  place.replaceChildren(made);
}

const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) (near.unobserve(target), make(target));
}, { rootMargin: "600px" });
for (const place of document.querySelectorAll(".piece")) near.observe(place);

const fragment = () => `#${[...kept].map(([name, state]) => `${name}=${state}`).join("&")}`;

addEventListener("message", ({ source, data }) => {
  const made = frames.get(data?.piece);
  if (!made || made.contentWindow !== source) return;
  if (data.height) made.style.height = `${Math.ceil(data.height)}px`;
  if (!data.state) return;
  kept.set(data.piece, `1.${data.state}`);
  try {
    history.replaceState(null, "", fragment());
  } catch {} // some browsers refuse it for a page opened as a file
});

document.getElementById("copy").onclick = async ({ target }) => {
  const address = location.href.split("#")[0] + fragment();
  await navigator.clipboard.writeText(address).then(() => (target.textContent = "Copied"), () => prompt("Copy this address:", address));
};
