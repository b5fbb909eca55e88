/** Shows what is known: the veil, the status, and which buttons can be pressed; decides nothing. */
import { cannotAsk } from "./camera.js";
import { byId, make, say } from "./dom.js";
import { veilFor } from "./veil.js";

const VEIL_AFTER_MS = 250;

const press = (id, on) => byId(id).setAttribute("aria-pressed", String(Boolean(on)));

/** The page around the parts that draw themselves. */
export class View {
  #parts;
  #veil = null;
  #timer = 0;

  /** @param {object} parts seen, camera, peer, before, faces, motion */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Whether something covers the picture. */
  get veiled() {
    return Boolean(this.#veil);
  }

  /** Show everything as it is now. */
  draw() {
    const { seen, camera, motion } = this.#parts;
    this.#showVeil(veilFor({
      ...seen,
      playing: motion.playing,
      host: location.hostname,
      camera: { track: camera.track, error: camera.error, asking: camera.asking, forbidden: cannotAsk() },
    }));
    this.#showRest();
  }

  #showRest() {
    this.#showStatus();
    this.#showButtons();
    this.#showPicture();
    this.#showStrip();
  }

  #showButtons() {
    const { seen, before, camera } = this.#parts;
    const blank = seen.state?.blank || seen.pendingBlank;
    press("blank", blank);
    say(byId("blank-label"), blank ? "Show again" : "Blank now");
    say(byId("blank-key"), blank ? "L" : "Esc");
    press("record", seen.state?.recording);
    press("compare", before.held);
    press("mirror", seen.mirrored);
    press("show-faces", seen.showFaces);
    byId("unpick").hidden = !seen.state?.picked;
    byId("record").disabled = !seen.online;
    byId("compare").disabled = this.veiled;
    byId("panel").inert = !seen.online;
    byId("own-camera-field").hidden = seen.state?.input !== "browser" || camera.cameras.length < 2;
  }

  #showPicture() {
    const { seen, before, faces } = this.#parts;
    byId("picture").classList.toggle("mirrored", seen.mirrored);
    byId("picture").inert = this.veiled;
    faces.mirrored = seen.mirrored;
    byId("faces").hidden = before.held;
    byId("ribbon").hidden = !before.held;
    say(byId("ribbon"), before.held ? "Before – only you see this" : "");
  }

  /** Another browser sends its camera: say so, and offer to take over. */
  #showStrip() {
    const { seen, peer } = this.#parts;
    const elsewhere = seen.online && seen.state?.input === "browser" && peer.kind === "watch";
    byId("strip").hidden = !elsewhere || this.veiled;
    say(byId("strip-text"), elsewhere ? `The picture comes from ${seen.state.sender || "another browser"}.` : "");
  }

  #showStatus() {
    const [kind, words] = this.#status();
    byId("status").dataset.kind = kind;
    say(byId("status-text"), words);
  }

  #status() {
    const { seen, motion } = this.#parts;
    if (seen.denied) return ["lost", "No access"];
    if (!seen.online) return ["lost", seen.everOnline ? "Connection lost" : "Connecting"];
    if (seen.state?.blank) return ["blank", "Hidden"];
    return motion.playing ? ["live", "Live"] : ["wait", "Waiting"];
  }

  /** A veil that only says "wait" comes a moment late: most waits are over by then. */
  #showVeil(next) {
    clearTimeout(this.#timer);
    if (next?.kind === "wait" && !this.#veil && this.#parts.seen.everOnline) {
      this.#timer = setTimeout(() => {
        this.#drawVeil(next);
        this.#showRest();
      }, VEIL_AFTER_MS);
    } else {
      this.#drawVeil(next);
    }
  }

  #drawVeil(next) {
    this.#veil = next;
    byId("veil").hidden = !next;
    if (!next) return;
    byId("veil").dataset.kind = next.kind;
    say(byId("veil-title"), next.title);
    say(byId("veil-text"), next.text ?? "");
    say(byId("veil-fine"), next.fine ?? "");
    say(byId("veil-go"), next.go ?? "");
    byId("veil-go").hidden = !next.go;
    byId("veil-go").dataset.act = next.act ?? "";
    byId("token-form").hidden = !next.token;
    byId("veil-steps").hidden = !next.steps;
    byId("veil-steps").replaceChildren(...(next.steps ?? []).map((step) => make("li", {}, step)));
    if (next.kind === "start" && document.activeElement === document.body) byId("veil-go").focus({ preventScroll: true });
  }
}
