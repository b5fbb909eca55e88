/** Keys of the page, and buttons that act while they are held; knows no run. */
import { byId, make } from "./dom.js";
import { KEYS } from "./words.js";

const SPACE_IS_THEIRS = "button, input, select, textarea, summary, a[href], [role=radio]";
const LETTERS_ARE_THEIRS = "input:not([type=range]):not([type=checkbox]), select, textarea";

/** Call `does[key]()` for each key; "b" gets true when it goes down and false when it comes up. */
export function listenToKeys(does) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const on = event.target instanceof Element ? event.target : document.body;
    if (event.key === "Escape" || (event.key === " " && !on.closest(SPACE_IS_THEIRS))) {
      event.preventDefault();
      if (!event.repeat) does.blank();
      return;
    }
    if (on.closest(LETTERS_ARE_THEIRS) || event.repeat) return;
    const act = does[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act(true);
  });
  addEventListener("keyup", (event) => event.key.toLowerCase() === "b" && does.b(false));
  addEventListener("blur", () => does.b(false));
}

/** Make a button that acts for as long as it is held, by finger, mouse or key. */
export function holdable(button, hold, release) {
  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    hold();
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) button.addEventListener(end, release);
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) hold();
  });
  button.addEventListener("keyup", (event) => (event.key === " " || event.key === "Enter") && release());
}

/** Fill the help with the keys there are. */
export function writeHelp() {
  byId("keys").replaceChildren(
    ...KEYS.flatMap(([keys, words]) => [make("dt", {}, ...keys.map((key) => make("kbd", {}, key))), make("dd", {}, words)]),
  );
}
