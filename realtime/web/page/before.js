/** The picture before the swap, while a key or a button is held; for this page only. */

const EVERY_MS = 100;

/** Shows the page's own camera where it sends, else asks the run for its pictures, one after another. */
export class Before {
  #link;
  #own;
  #canvas;
  #held = false;
  #onChange;

  constructor(link, own, canvas, onChange) {
    this.#link = link;
    this.#own = own;
    this.#canvas = canvas;
    this.#onChange = onChange;
  }

  /** Whether it is shown now. */
  get held() {
    return this.#held;
  }

  /** Show it until `release`. */
  hold(stream) {
    if (this.#held) return;
    this.#held = true;
    if (stream) {
      if (this.#own.srcObject !== stream) this.#own.srcObject = stream;
      this.#own.play().catch(() => {}); // it may be released before it plays
      this.#own.hidden = false;
    } else {
      this.#poll();
    }
    this.#onChange(true);
  }

  /** Show the swapped picture again. */
  release() {
    if (!this.#held) return;
    this.#held = false;
    this.#own.hidden = true;
    this.#own.srcObject = null;
    this.#canvas.hidden = true;
    this.#onChange(false);
  }

  async #poll() {
    while (this.#held) {
      const asked_ms = performance.now();
      try {
        const answer = await this.#link.fetch("api/before.jpg");
        if (answer.status === 200) await this.#draw(await answer.blob());
      } catch {
        // The line is down, or no picture came: the next one may.
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(10, EVERY_MS - (performance.now() - asked_ms))));
    }
  }

  async #draw(blob) {
    const picture = await createImageBitmap(blob);
    if (this.#held) {
      this.#canvas.width = picture.width;
      this.#canvas.height = picture.height;
      this.#canvas.getContext("2d").drawImage(picture, 0, 0);
      this.#canvas.hidden = false;
    }
    picture.close();
  }
}
