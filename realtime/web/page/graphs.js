/** The last minute in three small graphs: rates, delay, and the time of each step, stacked. Cheap: four a second at most. */
import { byId, make, say } from "./dom.js";
import { stepName } from "./words.js";

const SPAN_S = 60;
const DRAW_EVERY_MS = 250;
const COLOURS = 8;
const LEGEND_ROWS = 5;

/** The steps of a picture without their total, which the run tells as "compute"; what no step accounts for is "other". */
function withoutTotal({ compute, ...steps }) {
  if (compute === undefined) return steps;
  const known = Object.values(steps).reduce((sum, one) => sum + one, 0);
  return { ...steps, other: Math.max(0, compute - known) };
}

/** A height that does not jump: the next of these above the largest value. */
function roundUp(value) {
  return [5, 10, 20, 40, 60, 100, 150, 200, 300, 500, 1000, 2000, 5000].find((top) => top >= value) ?? value;
}

/** Keeps what came in the last minute and draws it when it is in view. */
export class Graphs {
  #points = [];
  #steps = [];
  #drawn_ms = -Infinity;
  #timer = 0;
  #visible = true;
  #ink = {};

  constructor() {
    new IntersectionObserver((entries) => {
      this.#visible = entries.at(-1).isIntersecting;
      this.#plan();
    }).observe(byId("graphs"));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.#takeInk());
    this.#takeInk();
    addEventListener("resize", () => this.#plan());
    document.addEventListener("visibilitychange", () => this.#plan());
  }

  /** Take the figures of a moment. */
  add(figures) {
    const now_s = performance.now() / 1000;
    const steps = withoutTotal(figures.steps_ms);
    const delays = Object.values(figures.latency_ms);
    const slowest = delays.reduce((most, one) => (one[0] > most[0] ? one : most), [0, 0]);
    this.#points.push({ t_s: now_s, in: figures.fps_in, out: figures.fps_out, p50: slowest[0], p95: slowest[1], steps });
    while (this.#points[0].t_s < now_s - SPAN_S) this.#points.shift();
    for (const step of Object.keys(steps)) if (!this.#steps.includes(step)) this.#steps.push(step);
    this.#plan();
  }

  /** Start anew, e.g. after a lost connection: a line across the gap would say what nobody knows. */
  gap() {
    this.#points.push({ t_s: performance.now() / 1000, gap: true, steps: {} });
  }

  #takeInk() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    this.#ink = { line: of("--line"), soft: of("--ink-soft"), steps: Array.from({ length: COLOURS }, (_, i) => of(`--s${i}`)) };
    byId("legend").replaceChildren();
    this.#plan();
  }

  #plan() {
    if (this.#timer || !this.#visible || document.hidden) return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#drawn_ms = performance.now();
      this.#draw();
    }, Math.max(0, this.#drawn_ms + DRAW_EVERY_MS - performance.now()));
  }

  #draw() {
    const last = this.#points.at(-1);
    if (!last || last.gap) return;
    const fps_top = roundUp(Math.max(30, ...this.#points.map((point) => point.in ?? 0)));
    this.#lines("graph-fps", fps_top, ["in", "out"], [this.#ink.steps[7], this.#ink.steps[0]]);
    const delay_top = roundUp(Math.max(40, ...this.#points.map((point) => point.p95 ?? 0)));
    this.#lines("graph-delay", delay_top, ["p95", "p50"], [this.#ink.steps[7], this.#ink.steps[0]]);
    this.#stack(last);
    say(byId("now-fps"), `${last.out.toFixed(0)} of ${last.in.toFixed(0)}`);
    say(byId("now-delay"), last.p50 ? `${last.p50.toFixed(0)} ms` : "");
  }

  /** A canvas of the size that it has on the page, with its grid. */
  #begin(id, top, unit) {
    const canvas = byId(id);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const newest_s = this.#points.at(-1).t_s;
    const x = (t_s) => width - ((newest_s - t_s) / SPAN_S) * width;
    const y = (value) => height - 1 - (Math.min(value, top) / top) * (height - 14);
    pen.strokeStyle = this.#ink.line;
    pen.lineWidth = 1;
    pen.font = "11px sans-serif";
    pen.fillStyle = this.#ink.soft;
    for (const value of [0, top / 2, top]) {
      pen.beginPath();
      pen.moveTo(0, Math.round(y(value)) + 0.5);
      pen.lineTo(width, Math.round(y(value)) + 0.5);
      pen.stroke();
      if (value) pen.fillText(`${value}${unit}`, 0, y(value) - 3);
    }
    return { pen, x, y };
  }

  #lines(id, top, names, colours) {
    const { pen, x, y } = this.#begin(id, top, id === "graph-delay" ? " ms" : "");
    names.forEach((name, index) => {
      pen.strokeStyle = colours[index];
      pen.lineWidth = index ? 2 : 1.25;
      pen.lineJoin = "round";
      pen.beginPath();
      let down = false;
      for (const point of this.#points) {
        if (point.gap) down = false;
        else if (down) pen.lineTo(x(point.t_s), y(point[name]));
        else {
          pen.moveTo(x(point.t_s), y(point[name]));
          down = true;
        }
      }
      pen.stroke();
    });
  }

  #stack(last) {
    const sum = (point) => Object.values(point.steps).reduce((total, one) => total + one, 0);
    const interval_ms = last.in > 1 ? 1000 / last.in : 0;
    const top = roundUp(Math.max(interval_ms, ...this.#points.map(sum)));
    const { pen, x, y } = this.#begin("graph-work", top, " ms");
    const points = this.#points.filter((point) => !point.gap);
    const floor = new Float64Array(points.length);
    this.#steps.forEach((step, index) => {
      pen.fillStyle = this.#ink.steps[index % COLOURS];
      pen.beginPath();
      points.forEach((point, at) => pen.lineTo(x(point.t_s), y(floor[at] + (point.steps[step] ?? 0))));
      for (let at = points.length - 1; at >= 0; at--) pen.lineTo(x(points[at].t_s), y(floor[at]));
      pen.fill();
      points.forEach((point, at) => (floor[at] += point.steps[step] ?? 0));
    });
    if (interval_ms) {
      pen.strokeStyle = this.#ink.soft;
      pen.setLineDash([4, 4]);
      pen.beginPath();
      pen.moveTo(0, y(interval_ms));
      pen.lineTo(byId("graph-work").clientWidth, y(interval_ms));
      pen.stroke();
      pen.setLineDash([]);
    }
    const room = interval_ms ? ` of ${interval_ms.toFixed(0)}` : "";
    say(byId("now-work"), `${sum(last).toFixed(1)}${room} ms`);
    this.#legend(last);
  }

  /** The dearest steps, in the order of the stack, so that rows do not swap places all the time. */
  #legend(last) {
    const dearest = [...this.#steps].sort((a, b) => (last.steps[b] ?? 0) - (last.steps[a] ?? 0)).slice(0, LEGEND_ROWS);
    const shown = this.#steps.filter((step) => dearest.includes(step));
    const list = byId("legend");
    if (list.dataset.steps !== shown.join() || list.children.length !== shown.length) {
      list.dataset.steps = shown.join();
      list.replaceChildren(...shown.map((step) => {
        const mark = make("i");
        mark.style.background = this.#ink.steps[this.#steps.indexOf(step) % COLOURS];
        return make("li", {}, mark, make("span", { title: step }, stepName(step)), make("b"));
      }));
    }
    shown.forEach((step, index) => say(list.children[index].lastElementChild, (last.steps[step] ?? 0).toFixed(1)));
  }
}
