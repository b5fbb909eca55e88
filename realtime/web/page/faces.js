/** Frames around the faces in view, each a button; a click anywhere in the picture picks the face there. */
import { make, say } from "./dom.js";

/** Draws them into `box`, and calls `pick(x, y)` with shares of the picture as the run has it, never mirrored. */
export class Faces {
  #box;
  #pick;
  #frames = new Map();
  mirrored = false;

  constructor(box, pick) {
    this.#box = box;
    this.#pick = pick;
    box.addEventListener("click", (event) => this.#clicked(event));
  }

  /** Show the faces of a moment. A frame is kept for as long as its face is followed, so that it glides. */
  show(faces) {
    const seen = new Set(faces.map((face) => face.track_id));
    for (const [id, frame] of this.#frames) {
      if (seen.has(id)) continue;
      frame.remove();
      this.#frames.delete(id);
    }
    faces.forEach((face, index) => this.#place(face, index + 1));
  }

  #place(face, number) {
    let frame = this.#frames.get(face.track_id);
    if (!frame) {
      frame = make("button", { type: "button", class: "face" }, make("span", { "aria-hidden": "true" }));
      frame.addEventListener("click", () => this.#pick(...frame.dataset.centre.split(" ").map(Number)));
      this.#frames.set(face.track_id, frame);
      this.#box.append(frame);
    }
    const clamp = (share) => Math.min(1, Math.max(0, share));
    const [left, right] = [clamp(face.left), clamp(face.right)];
    const [top, bottom] = [clamp(face.top), clamp(face.bottom)];
    frame.dataset.centre = `${((left + right) / 2).toFixed(4)} ${((top + bottom) / 2).toFixed(4)}`;
    frame.style.left = `${100 * (this.mirrored ? 1 - right : left)}%`;
    frame.style.top = `${100 * top}%`;
    frame.style.width = `${100 * (right - left)}%`;
    frame.style.height = `${100 * (bottom - top)}%`;
    frame.classList.toggle("low", top < 0.08);
    frame.setAttribute("aria-pressed", String(face.swapped));
    frame.setAttribute("aria-label", `Face ${number}, ${face.swapped ? "swapped: leave it alone" : "as it is: swap it"}`);
    say(frame.firstElementChild, face.swapped ? "Swapped" : "Swap this face");
  }

  #clicked(event) {
    if (event.target !== this.#box) return;
    const box = this.#box.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const y = (event.clientY - box.top) / box.height;
    if (x < 0 || x > 1 || y < 0 || y > 1) return;
    this.#pick(this.mirrored ? 1 - x : x, y);
  }
}
