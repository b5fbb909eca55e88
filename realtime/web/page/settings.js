/** One control for each setting that the run offers, made from its limits; knows no key by name (see words.js). */
import { byId, make } from "./dom.js";
import { ELSEWHERE, SETTINGS, nameOf, numberInWords, wordsOfChoice } from "./words.js";

const SEND_EVERY_MS = 80;
const OWN_MS = 700;

/** What kind of control a setting needs. */
export function kindOf(value, limits) {
  if (typeof value === "boolean") return "switch";
  if (limits.choices.length) return "choice";
  if (limits.low !== null && limits.high !== null) return "slider";
  return "text";
}

/** Shows settings and calls `send(key, value)` when one is changed. */
export class Settings {
  #send;
  #controls = new Map();
  #keys = "";

  constructor(send) {
    this.#send = send;
  }

  /** Show what the run says. What a hand is on stays as it is for a moment. */
  show({ values, limits: told }) {
    const limits = Object.fromEntries(
      Object.entries(told).map(([key, one]) => [key, one.choices.length ? one : { ...one, choices: SETTINGS[key]?.choices ?? [] }]),
    );
    const state = { values, limits };
    const keys = Object.keys(state.values).filter((key) => state.limits[key] && !ELSEWHERE.has(key));
    const shape = JSON.stringify(keys.map((key) => [key, kindOf(state.values[key], state.limits[key]), state.limits[key]]));
    if (shape !== this.#keys) {
      this.#keys = shape;
      this.#build(keys, state);
    }
    for (const key of keys) this.#controls.get(key).show(state.values[key]);
  }

  /** Forget what was being changed: a refused order left the run as it was. */
  release() {
    for (const control of this.#controls.values()) control.release();
  }

  #build(keys, state) {
    const known = Object.keys(SETTINGS);
    const place = (key) => (known.includes(key) ? known.indexOf(key) : known.length);
    const groups = { look: [], faces: [], network: [], other: [] };
    this.#controls.clear();
    for (const key of keys.sort((a, b) => place(a) - place(b))) {
      const control = new Control(key, state.values[key], state.limits[key], this.#send);
      this.#controls.set(key, control);
      groups[SETTINGS[key]?.group ?? "other"].push(control.node);
    }
    for (const [group, nodes] of Object.entries(groups)) byId(`set-${group}`).replaceChildren(...nodes);
  }
}

/** One of them. */
class Control {
  #key;
  #limits;
  #kind;
  #send;
  #input;
  #output;
  #touched_ms = -Infinity;
  #sent_ms = -Infinity;
  #timer = 0;

  constructor(key, value, limits, send) {
    this.#key = key;
    this.#limits = limits;
    this.#kind = kindOf(value, limits);
    this.#send = send;
    const id = `set-${key.replaceAll(".", "-")}`;
    this.#input = this.#makeInput(id, value);
    this.#output = make("output", { for: id });
    this.node = make("div", { class: `setting ${this.#kind}`, "data-key": key }, make("label", { for: id }, nameOf(key)));
    if (this.#kind === "slider") this.node.append(this.#output);
    this.node.append(this.#input, ...this.#notes(id));
    const event = this.#kind === "slider" ? "input" : "change";
    this.#input.addEventListener(event, () => this.#changed());
  }

  /** Show a value of the run's, unless a hand is on it. */
  show(value) {
    if (performance.now() - this.#touched_ms < OWN_MS || this.#timer) return;
    if (this.#kind === "text" && document.activeElement === this.#input) return;
    if (this.#kind === "switch") this.#input.checked = value;
    else this.#input.value = String(value);
    this.#paint();
  }

  /** Take the next value of the run's in any case. */
  release() {
    this.#touched_ms = -Infinity;
    if (document.activeElement === this.#input && this.#kind === "text") this.#input.blur();
  }

  #makeInput(id, value) {
    const { low, high, choices, words } = this.#limits;
    if (this.#kind === "switch") return make("input", { id, type: "checkbox", role: "switch" });
    if (this.#kind === "text") return make("input", { id, type: "text", spellcheck: "false", placeholder: words });
    if (this.#kind === "slider") {
      const whole = Number.isInteger(value) && high - low > 1 && /whole|^a number of/i.test(words);
      const step = whole ? 1 : high - low > 2 ? 0.1 : 0.01;
      return make("input", { id, type: "range", min: low, max: high, step });
    }
    const options = choices.map((choice) => make("option", { value: choice }, wordsOfChoice(this.#key, choice)));
    return make("select", { id }, ...options);
  }

  #notes(id) {
    const { ends, note } = SETTINGS[this.#key] ?? {};
    const nodes = [];
    if (ends && this.#kind === "slider") nodes.push(make("div", { class: "ends", "aria-hidden": "true" }, ...ends.map((end) => make("span", {}, end))));
    const text = note ?? (SETTINGS[this.#key] ? "" : this.#limits.words);
    if (text) {
      nodes.push(make("p", { class: "fine", id: `${id}-note` }, text));
      this.#input.setAttribute("aria-describedby", `${id}-note`);
    }
    return nodes;
  }

  #value() {
    if (this.#kind === "switch") return this.#input.checked;
    const value = this.#input.value.trim();
    if (this.#kind === "slider" || (this.#kind === "choice" && /^\d+$/.test(value))) return Number(value);
    return value;
  }

  #paint() {
    if (this.#kind !== "slider") return;
    const { low, high } = this.#limits;
    const words = numberInWords(this.#key, Number(this.#input.value), this.#limits);
    this.#input.style.setProperty("--fill", `${(100 * (this.#input.value - low)) / (high - low)}%`);
    this.#input.setAttribute("aria-valuetext", words);
    this.#output.textContent = words;
  }

  /** While a slider moves, a value goes out every SEND_EVERY_MS; the last one always does. */
  #changed() {
    this.#touched_ms = performance.now();
    this.#paint();
    if (this.#timer) return;
    const wait_ms = Math.max(0, this.#sent_ms + SEND_EVERY_MS - this.#touched_ms);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#sent_ms = performance.now();
      this.#send(this.#key, this.#value());
    }, wait_ms);
  }
}
