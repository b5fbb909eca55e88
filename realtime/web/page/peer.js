/** The pictures of one page: sends its camera and shows the answer, or only watches; knows no element of the page. */

import { reasonOf } from "./reason.js";

const GATHER_MS = 200;
const TOGETHER_MS = 10;
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;
const GRACE_MS = 2500;

/** H.264 first: it is the cheapest to make and to show; what else there is stays as a spare. */
function preferH264(transceiver) {
  const codecs = RTCRtpReceiver.getCapabilities?.("video")?.codecs;
  if (!codecs || !transceiver.setCodecPreferences) return;
  const isH264 = (codec) => codec.mimeType.toLowerCase() === "video/h264";
  transceiver.setCodecPreferences([...codecs.filter(isH264), ...codecs.filter((codec) => !isH264(codec))]);
}

/** Show each picture as soon as it is there. Both names of the same wish, an older and the standard one. */
function hurry(receiver) {
  if ("playoutDelayHint" in receiver) receiver.playoutDelayHint = 0;
  if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
}

/** The whole size all the time: a picture that changes size would be worked on anew. */
async function keepSize(sender) {
  const parameters = sender.getParameters();
  parameters.degradationPreference = "maintain-resolution";
  await sender.setParameters(parameters).catch(() => {}); // only a wish: browsers differ in what they take
}

/**
 * Resolves when all candidates are in the offer, a moment after the first one, or after GATHER_MS: those of this machine
 * come at once and together, and one is enough, because this side also asks at the addresses in the answer.
 */
function gathered(pc) {
  return new Promise((resolve) => {
    pc.addEventListener("icegatheringstatechange", () => pc.iceGatheringState === "complete" && resolve());
    pc.addEventListener("icecandidate", () => setTimeout(resolve, TOGETHER_MS));
    setTimeout(resolve, GATHER_MS);
    if (pc.iceGatheringState === "complete") resolve();
  });
}

/**
 * One peer connection at a time, made anew for as long as it is wanted.
 *
 * Tells `stream` (detail: the MediaStream to show), `status` (detail: "off", "connecting", "live", "lost"), `refused`
 * (detail: why, in words) and `ended`: the other side closed on purpose what this page sent; `retry` goes on.
 */
export class Peer extends EventTarget {
  #link;
  #pc = null;
  #place = "";
  #wait_ms = FIRST_WAIT_MS;
  #timer = 0;
  #track = null;
  #buffer = { delay_s: 0, shown: 0 };
  /** What is wanted: "" nothing, "share" camera and answer, "watch" only watch. */
  kind = "";
  status = "off";

  constructor(link) {
    super();
    this.#link = link;
  }

  /** Send this track, and show what comes back. */
  share(track) {
    if (this.kind === "share" && this.#track === track) return;
    this.#want("share", track);
  }

  /** Only show. */
  watch() {
    if (this.kind !== "watch") this.#want("watch", null);
  }

  /** Neither. */
  stop() {
    if (this.kind) this.#want("", null);
  }

  /** Send another camera over the same connection. */
  async replace(track) {
    this.#track = track;
    const sender = this.#pc?.getSenders().find((one) => one.track);
    if (sender) await sender.replaceTrack(track);
  }

  /** Give the place on the server back at once, also while the page is closed. */
  leave() {
    clearTimeout(this.#timer);
    if (this.#place) this.#link.fetch(this.#place, { method: "DELETE", keepalive: true }).catch(() => {});
    this.#place = "";
    this.#pc?.close();
    this.#pc = null;
  }

  /** Try again at once, e.g. because the server is back; also where all seems well, if `force`. */
  retry(force = false) {
    if (!this.kind || (this.status === "live" && !force)) return;
    this.#wait_ms = FIRST_WAIT_MS;
    this.#connect();
  }

  /** What this page itself measures: size, codec, rates; empty while nothing comes. */
  async measure() {
    if (!this.#pc) return {};
    const found = {};
    const stats = await this.#pc.getStats();
    stats.forEach((one) => {
      if (one.type === "inbound-rtp" && one.kind === "video") {
        found.size = one.frameWidth ? `${one.frameWidth}x${one.frameHeight}` : "";
        found.fps = one.framesPerSecond ?? 0;
        found.codec = stats.get(one.codecId)?.mimeType?.split("/")[1] ?? "";
        const [delay_s, shown] = [one.jitterBufferDelay - this.#buffer.delay_s, one.jitterBufferEmittedCount - this.#buffer.shown];
        if (shown > 0) found.buffer_ms = (1000 * delay_s) / shown;
        this.#buffer = { delay_s: one.jitterBufferDelay, shown: one.jitterBufferEmittedCount };
      } else if (one.type === "outbound-rtp" && one.kind === "video") {
        found.sent = one.frameWidth ? `${one.frameWidth}x${one.frameHeight}, ${one.framesPerSecond ?? 0} pictures/s` : "";
      } else if (one.type === "candidate-pair" && one.nominated && one.currentRoundTripTime !== undefined) {
        found.way_ms = 1000 * one.currentRoundTripTime;
      }
    });
    return found;
  }

  #want(kind, track) {
    this.leave();
    this.kind = kind;
    this.#track = track;
    this.#wait_ms = FIRST_WAIT_MS;
    if (kind) this.#connect();
    else this.#tellStatus("off");
  }

  #tellStatus(status) {
    if (this.status === status) return;
    this.status = status;
    this.dispatchEvent(new CustomEvent("status", { detail: status }));
  }

  async #connect() {
    this.leave();
    this.#tellStatus(this.status === "lost" ? "lost" : "connecting");
    const pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
    this.#pc = pc;
    this.#buffer = { delay_s: 0, shown: 0 };
    try {
      await this.#prepare(pc);
      await this.#exchange(pc);
    } catch (error) {
      if (pc !== this.#pc) return;
      if (error instanceof Refusal) this.dispatchEvent(new CustomEvent("refused", { detail: error.message }));
      this.#again(pc);
    }
  }

  async #prepare(pc) {
    const sharing = this.kind === "share";
    const transceiver = pc.addTransceiver(sharing ? this.#track : "video", { direction: sharing ? "sendrecv" : "recvonly" });
    preferH264(transceiver);
    hurry(transceiver.receiver);
    if (sharing) await keepSize(transceiver.sender);
    pc.ontrack = (event) => {
      const stream = event.streams[0] ?? new MediaStream([event.track]);
      this.dispatchEvent(new CustomEvent("stream", { detail: stream }));
    };
    pc.onconnectionstatechange = () => this.#changed(pc);
  }

  /** One question, one answer: the offer with its candidates goes up, the answer with the server's comes back. */
  async #exchange(pc) {
    await pc.setLocalDescription();
    await gathered(pc);
    const answer = await this.#link.fetch(this.kind === "share" ? "session" : "whep", {
      method: "POST",
      headers: { "Content-Type": "application/sdp" },
      body: pc.localDescription.sdp,
    });
    if (!answer.ok) throw new Refusal(await reasonOf(answer));
    const place = answer.headers.get("Location") ?? "";
    if (pc !== this.#pc) {
      if (place) this.#link.fetch(place, { method: "DELETE" }).catch(() => {});
      return;
    }
    this.#place = place;
    await pc.setRemoteDescription({ type: "answer", sdp: await answer.text() });
  }

  #changed(pc) {
    if (pc !== this.#pc) return;
    const state = pc.connectionState;
    if (state === "connected") {
      clearTimeout(this.#timer);
      this.#wait_ms = FIRST_WAIT_MS;
      this.#tellStatus("live");
    } else if (state === "closed" || pc.getReceivers()[0]?.transport?.state === "closed") {
      this.#ended(pc);
    } else if (state === "failed") {
      this.#again(pc);
    } else if (state === "disconnected") {
      this.#tellStatus("lost");
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#connect(), GRACE_MS); // it may come back by itself: one lost packet looks alike
    }
  }

  /** Whoever sends and is sent away must not come back at once: two pages would take the place from each other for ever. */
  #ended(pc) {
    if (this.kind !== "share") return this.#again(pc);
    this.leave();
    this.#tellStatus("lost");
    this.dispatchEvent(new Event("ended"));
  }

  #again(pc) {
    if (pc !== this.#pc) return;
    this.leave();
    this.#tellStatus("lost");
    this.#timer = setTimeout(() => this.#connect(), this.#wait_ms);
    this.#wait_ms = Math.min(LONGEST_WAIT_MS, this.#wait_ms * 2);
  }
}

class Refusal extends Error {}
