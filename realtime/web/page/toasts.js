/** Messages: notes go by themselves, warnings stay until they are closed; at most three, the newest last. */
import { byId, make, sign } from "./dom.js";

const MOST = 3;
const STAY_MS = 6000;

/** Show a message. The same one twice is shown once, as new. */
export function toast(said, hint = "", warning = false) {
  const text = (said[0] ?? "").toUpperCase() + said.slice(1).replace(/:\s*$/, "");
  const list = byId("toasts");
  for (const old of [...list.children]) if (old.dataset.text === text) old.remove();
  while (list.children.length >= MOST) list.firstElementChild.remove();
  const close = make("button", { type: "button", "aria-label": "Close this message" }, sign("i-close"));
  const node = make("div", { class: warning ? "toast warning" : "toast", role: warning ? "alert" : false, "data-text": text }, make("p", {}, text));
  if (hint) node.append(make("p", { class: "hint" }, hint));
  node.append(close);
  close.addEventListener("click", () => node.remove());
  if (!warning) fade(node);
  list.append(node);
}

/** Remove it after a while, not while somebody points at it or has the focus in it. */
function fade(node) {
  setTimeout(() => (node.matches(":hover, :focus-within") ? fade(node) : node.remove()), STAY_MS);
}
