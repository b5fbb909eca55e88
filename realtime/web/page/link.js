/** The line to the run: orders out, events in, the token with every request; knows nothing of what they mean. */
import { reasonOf } from "./reason.js";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 5000;
const SILENCE_MS = 10000;
const TOKEN_KEY = "doppelcam.token";

/** Take the token out of the address, so that it is in no history and no screenshot, and keep it for this tab. */
function tokenOfAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN_KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

/**
 * Tells `up`, `down`, `denied` (detail: why, e.g. the token is too old), and `state`, `figures`, `note` with the event as
 * `detail`. Tries again by itself for as long as the page is open.
 */
export class Link extends EventTarget {
  #socket = null;
  #token = tokenOfAddress();
  #wait_ms = FIRST_WAIT_MS;
  #timer = 0;
  #silence = 0;
  #urgent = null;
  #denied = false;

  /** Whether orders arrive now. */
  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Connect, and stay connected. */
  start() {
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.#retryNow());
    this.#connect();
  }

  /** Go on with another token. */
  use(token) {
    this.#token = token.trim();
    sessionStorage.setItem(TOKEN_KEY, this.#token);
    this.#denied = false;
    this.#retryNow();
  }

  /** Send an order; false where the line is down and it is lost. */
  send(order) {
    if (!this.open) return false;
    this.#socket.send(JSON.stringify(order));
    return true;
  }

  /** Send an order now, or first of all when the line is back. The latest one counts. */
  sendUrgent(order) {
    this.#urgent = this.send(order) ? null : order;
  }

  /** `fetch` with the token; the path is relative to the page. */
  fetch(path, options = {}) {
    const headers = new Headers(options.headers);
    if (this.#token) headers.set("Authorization", `Bearer ${this.#token}`);
    return fetch(path, { ...options, headers, cache: "no-store" });
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const url = new URL("ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.hash = "";
    const socket = new WebSocket(url, this.#token ? ["doppelcam", this.#token] : []);
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#wait_ms = FIRST_WAIT_MS;
      if (this.#urgent) this.sendUrgent(this.#urgent);
      this.#listenForSilence();
      this.dispatchEvent(new Event("up"));
    };
    socket.onmessage = (message) => {
      this.#listenForSilence();
      const event = JSON.parse(message.data);
      this.dispatchEvent(new CustomEvent(event.tell, { detail: event }));
    };
    socket.onclose = () => this.#closed(socket, opened);
  }

  /** A line that died without a word (a laptop that slept) is told by its silence: figures come several times a second. */
  #listenForSilence() {
    clearTimeout(this.#silence);
    const socket = this.#socket;
    this.#silence = setTimeout(() => this.#closed(socket, true), SILENCE_MS);
  }

  async #closed(socket, opened) {
    if (socket !== this.#socket) return;
    clearTimeout(this.#silence);
    socket.onclose = null;
    socket.close();
    this.#socket = null;
    this.dispatchEvent(new Event("down"));
    const wait_ms = this.#wait_ms;
    this.#wait_ms = Math.min(LONGEST_WAIT_MS, wait_ms * 2);
    this.#timer = setTimeout(() => this.#connect(), wait_ms);
    if (!opened) await this.#askWhy();
  }

  /** A browser does not say why a WebSocket was refused; the same question over HTTP does. */
  async #askWhy() {
    try {
      const answer = await this.fetch("api/state");
      if (answer.status === 401 || answer.status === 403) {
        clearTimeout(this.#timer);
        this.#timer = 0;
        this.#denied = true;
        this.dispatchEvent(new CustomEvent("denied", { detail: await reasonOf(answer) }));
      }
    } catch {
      // The server is not there: the timer tries again.
    }
  }

  #retryNow() {
    if (this.#denied || this.open || this.#socket?.readyState === WebSocket.CONNECTING) return;
    this.#wait_ms = FIRST_WAIT_MS;
    this.#connect();
  }
}
