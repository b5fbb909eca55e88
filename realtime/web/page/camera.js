/** The camera of this browser, and why it cannot be had; knows no run. */

const WISH = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30, max: 30 } };

/** What went wrong: a title and what to do, both for people. */
function trouble(title, hint) {
  return { title, hint };
}

/** Why a page may have no camera at all; null where it may. */
export function cannotAsk() {
  if (!isSecureContext) {
    return trouble(
      "This page may not use a camera",
      "Browsers lend cameras only to secure pages. Open this one with https://, or on the computer that runs doppelcam with http://localhost.",
    );
  }
  if (!navigator.mediaDevices?.getUserMedia) {
    return trouble("This browser has no cameras for pages", "Use a current Chrome, Edge, Firefox or Safari, or choose another camera under “Picture from”.");
  }
  return null;
}

/** The browser's own error, for people. */
function explain(error) {
  switch (error.name) {
    case "NotAllowedError":
      return /system/i.test(error.message)
        ? trouble("The system keeps the camera from this browser", "Allow it in the system's privacy settings, under Camera. Then try again.")
        : trouble("The camera is not allowed yet", "Click the camera sign beside the address above, choose “Allow”, then try again.");
    case "NotFoundError":
    case "OverconstrainedError":
      return trouble("No camera found", "Plug one in and try again, or choose something else under “Picture from”.");
    case "NotReadableError":
    case "AbortError":
      return trouble("The camera is busy", "Another program may be using it. Close that one, then try again.");
    case "SecurityError":
      return trouble("The camera is switched off for this page", "The browser's settings forbid it. Allow cameras there, then try again.");
    default:
      return trouble("The camera did not start", `The browser says: ${error.message || error.name}. Try again, or choose another camera.`);
  }
}

/** Tells `change` whenever `track`, `error` or `cameras` is another one. */
export class Camera extends EventTarget {
  stream = null;
  error = null;
  asking = false;
  cameras = [];
  #device = "";
  #lock = null;

  /** The picture track, null while there is none. */
  get track() {
    return this.stream?.getVideoTracks()[0] ?? null;
  }

  /** The id of the camera in use. */
  get device() {
    return this.track?.getSettings().deviceId ?? this.#device;
  }

  /** Ask for the camera. Never throws: see `error`. */
  async start(device = this.#device) {
    this.#device = device;
    this.error = cannotAsk();
    if (!this.error) {
      this.asking = true;
      this.#tell();
      try {
        const which = device ? { deviceId: { exact: device } } : { facingMode: "user" };
        const stream = await navigator.mediaDevices.getUserMedia({ video: { ...WISH, ...which }, audio: false });
        this.#take(stream);
      } catch (error) {
        this.error = explain(error);
      }
      this.asking = false;
    }
    this.#tell();
    if (this.track) await this.#look();
  }

  /** Let go of it: its light goes out. */
  stop() {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.stream = null;
    this.error = null;
    this.#lock?.release().catch(() => {});
    this.#lock = null;
    this.#tell();
  }

  #take(stream) {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.stream = stream;
    const track = stream.getVideoTracks()[0];
    track.contentHint = "motion";
    track.addEventListener("ended", () => {
      if (track !== this.track) return;
      this.stop();
      this.error = trouble("The camera has gone", "It was unplugged, or its permission was taken back. Plug it in and try again.");
      this.#tell();
    });
    navigator.wakeLock?.request("screen").then((lock) => (this.#lock = lock), () => {}); // a phone that sleeps sends nothing
  }

  async #look() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    this.cameras = devices
      .filter((one) => one.kind === "videoinput")
      .map((one, index) => ({ value: one.deviceId, words: one.label || `Camera ${index + 1}` }));
    navigator.mediaDevices.ondevicechange = () => this.#look();
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}
