/** Whether pictures move in a video element; knows no run. */

const STILL_MS = 3000;

/** Calls `changed` when pictures begin to come, and when none came for three seconds while the page was looked at. */
export class Motion {
  #video;
  #changed;
  #last_ms = -Infinity;
  playing = false;

  constructor(video, changed) {
    this.#video = video;
    this.#changed = changed;
    if (video.requestVideoFrameCallback) this.#wait();
    else video.addEventListener("timeupdate", () => this.#seen());
    setInterval(() => this.#look(), 500);
  }

  /** Whether one came within so many milliseconds. */
  within(ms) {
    return performance.now() - this.#last_ms < ms;
  }

  /** Take it as still until the next picture comes. */
  interrupt() {
    this.playing = false;
  }

  #wait() {
    this.#video.requestVideoFrameCallback(() => {
      this.#seen();
      this.#wait();
    });
  }

  #seen() {
    this.#last_ms = performance.now();
    if (this.playing) return;
    this.playing = true;
    this.#changed();
  }

  #look() {
    if (!this.playing || document.hidden || this.within(STILL_MS)) return;
    this.playing = false;
    this.#changed();
  }
}
