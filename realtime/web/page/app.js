/** The control page: ties the line, the peer, the camera and the parts of the page together; decides what is wanted. */
import { Before } from "./before.js";
import { Camera } from "./camera.js";
import { byId, offer, say } from "./dom.js";
import { Faces } from "./faces.js";
import { Graphs } from "./graphs.js";
import { holdable, listenToKeys, writeHelp } from "./keys.js";
import { Link } from "./link.js";
import { Motion } from "./motion.js";
import { Peer } from "./peer.js";
import { Photos } from "./photos.js";
import { Room } from "./room.js";
import { Settings } from "./settings.js";
import { toast } from "./toasts.js";
import { View } from "./view.js";

const FRESH_MS = 1000;
const ENDED_MS = 700;
/** Whoever panics clicks twice: the second click must not take the first one back. */
const SECOND_CLICK_MS = 800;
const CAMERA_KEY = "doppelcam.camera";
const MIRROR_KEY = "doppelcam.mirror";

const link = new Link();
const peer = new Peer(link);
const camera = new Camera();
const preview = byId("preview");

/** All that is known; `view.draw` shows it. */
const seen = {
  online: false,
  everOnline: false,
  denied: "",
  state: null,
  peer: "off",
  refused: "",
  pendingBlank: false,
  yielded: false,
  showFaces: false,
  mirrored: localStorage.getItem(MIRROR_KEY) !== "no",
  recordingSince_ms: 0,
  blanked_ms: 0,
};

/** Send an order; where the line is down, say so instead of losing it in silence. */
function send(order) {
  if (!link.send(order)) toast("Not connected", "Nothing was changed. Try again when the line is back.", true);
}

const settings = new Settings((key, value) => send({ do: "set", key, value }));
const room = new Room(send);
const photos = new Photos(link, camera, (photo) => send({ do: "photo", photo }));
const graphs = new Graphs();
const faces = new Faces(byId("faces"), (x, y) => send({ do: "pick", x, y }));
const motion = new Motion(preview, () => draw());
const before = new Before(link, byId("own"), byId("before"), () => draw());
const view = new View({ seen, camera, peer, before, faces, motion });

function draw() {
  view.draw();
}

/* --- orders of the picture ------------------------------------------------------------------------------------- */

/** Hide the picture now. Without a line the own camera goes dark at once, and the order is the first one sent later. */
function blank() {
  before.release();
  seen.blanked_ms = performance.now();
  if (!link.open) {
    seen.pendingBlank = true;
    if (camera.track) camera.track.enabled = false;
  }
  link.sendUrgent({ do: "blank", on: true });
  draw();
}

/** Show the picture again. */
function live() {
  seen.pendingBlank = false;
  if (camera.track) camera.track.enabled = true;
  link.sendUrgent({ do: "blank", on: false });
  draw();
}

function record() {
  send({ do: "record", on: !seen.state?.recording });
}

function hold(on) {
  if (on && !view.veiled) before.hold(peer.kind === "share" ? camera.stream : null);
  else before.release();
}

function setMirror(on) {
  seen.mirrored = on;
  localStorage.setItem(MIRROR_KEY, on ? "yes" : "no");
  draw();
}

async function startCamera(device) {
  seen.yielded = false;
  await camera.start(device);
}

/* --- what is wanted of the peer -------------------------------------------------------------------------------- */

/** Send the own camera where the run takes it from a browser and this page has one, else watch what there is. */
function steer() {
  const { state, online } = seen;
  if (!state || !online) return;
  if (state.input !== "browser") {
    if (camera.track && peer.kind === "share") camera.stop();
    peer.watch();
  } else if (camera.track && !seen.yielded) {
    peer.share(camera.track);
  } else if (state.sender && peer.kind !== "share") {
    peer.watch(); // not at once after sharing: until the run has said so, that sender is this page
  } else {
    peer.stop();
  }
}

camera.addEventListener("change", () => {
  if (camera.track && peer.kind === "share") peer.replace(camera.track);
  sessionStorage.setItem(CAMERA_KEY, camera.track && seen.state?.input === "browser" ? "on" : "");
  offer(byId("own-camera"), camera.cameras, camera.device);
  steer();
  draw();
});

peer.addEventListener("stream", (event) => {
  preview.srcObject = event.detail;
  preview.play().catch(() => {}); // it is muted and plays by itself; a page in the background waits
});
peer.addEventListener("status", (event) => {
  seen.peer = event.detail;
  if (event.detail === "off") preview.srcObject = null;
  if (event.detail === "off" || event.detail === "lost") motion.interrupt();
  if (event.detail === "live") seen.refused = "";
  draw();
});
peer.addEventListener("refused", (event) => {
  seen.refused = event.detail;
  draw();
});
peer.addEventListener("ended", () => setTimeout(yieldOrRetry, ENDED_MS));

/** Sent away: another page sends now, if the run is still there a moment later and says so; else the run has ended. */
function yieldOrRetry() {
  if (peer.kind !== "share" || peer.status !== "lost") return;
  if (!seen.online || !seen.state.sender) {
    peer.retry();
    return;
  }
  seen.yielded = true;
  camera.stop();
  steer();
}

/* --- events of the run ----------------------------------------------------------------------------------------- */

link.addEventListener("up", () => {
  seen.online = seen.everOnline = true;
  seen.denied = "";
  if (seen.pendingBlank && camera.track) camera.track.enabled = true;
  seen.pendingBlank = false;
  peer.retry(!motion.within(FRESH_MS));
  draw();
});
link.addEventListener("down", () => {
  seen.online = false;
  before.release();
  graphs.gap();
  say(byId("read-fps"), "–");
  say(byId("read-delay"), "–");
  settings.release();
  draw();
});
link.addEventListener("denied", (event) => {
  seen.denied = event.detail;
  draw();
});
link.addEventListener("state", (event) => {
  const first = !seen.state;
  const { recording, input } = seen.state ?? {};
  const state = (seen.state = event.detail);
  if (state.recording !== recording) seen.recordingSince_ms = first ? 0 : performance.now();
  if (state.input === "browser" && state.input !== input) arriveAtBrowser(first);
  settings.show(state);
  room.show(state);
  photos.show(state);
  steer();
  draw();
});
link.addEventListener("figures", (event) => {
  const figures = event.detail;
  graphs.add(figures);
  faces.show(figures.faces);
  byId("faces").classList.toggle("shown", seen.showFaces || figures.faces.length > 1 || Boolean(seen.state?.picked));
  say(byId("read-fps"), figures.fps_out.toFixed(0));
  const delays = Object.values(figures.latency_ms).map(([p50]) => p50);
  say(byId("read-delay"), delays.length ? Math.max(...delays).toFixed(0) : "–");
  seen.line = figures.line;
});
link.addEventListener("note", (event) => {
  const { text, hint, warning } = event.detail;
  toast(text, hint, warning);
  if (!warning || !seen.state) return;
  settings.release();
  settings.show(seen.state);
  room.show(seen.state);
});

/** The run takes a browser's camera now: whoever chose that here, or had it on before a reload, is not asked again. */
function arriveAtBrowser(first) {
  if (!first || sessionStorage.getItem(CAMERA_KEY) === "on") startCamera();
}

/* --- each second ----------------------------------------------------------------------------------------------- */

async function everySecond() {
  const recording = Boolean(seen.state?.recording);
  const s = Math.floor((performance.now() - seen.recordingSince_ms) / 1000);
  const time = seen.recordingSince_ms ? `${String(Math.floor(s / 60)).padStart(2, "0")}:${String(s % 60).padStart(2, "0")}` : "Recording";
  say(byId("record-label"), recording ? time : "Record");
  if (byId("why").open) await showMeasured();
}

async function showMeasured() {
  const own = await peer.measure();
  const parts = [seen.line];
  if (own.size) parts.push(`This page shows ${own.size} at ${own.fps} pictures/s (${own.codec}), ${own.buffer_ms?.toFixed(0) ?? "?"} ms in its buffer.`);
  if (own.sent) parts.push(`It sends ${own.sent}.`);
  if (own.way_ms !== undefined) parts.push(`There and back: ${own.way_ms.toFixed(0)} ms.`);
  room.showLine(parts.filter(Boolean).join(" · "));
}

const ACTS = { start: () => startCamera(), live };

/* --- hands ----------------------------------------------------------------------------------------------------- */

byId("blank").addEventListener("click", () => {
  if (!seen.state?.blank && !seen.pendingBlank) blank();
  else if (performance.now() - seen.blanked_ms > SECOND_CLICK_MS) live();
});
preview.addEventListener("resize", () => {
  const aspect = preview.videoWidth / preview.videoHeight;
  if (aspect) byId("stage").style.setProperty("--aspect", aspect.toFixed(4));
});
byId("veil-go").addEventListener("click", (event) => ACTS[event.currentTarget.dataset.act]?.());
byId("strip-go").addEventListener("click", () => startCamera());
byId("record").addEventListener("click", record);
byId("mirror").addEventListener("click", () => setMirror(!seen.mirrored));
byId("show-faces").addEventListener("click", toggleFaces);
byId("unpick").addEventListener("click", () => send({ do: "unpick" }));
byId("help").addEventListener("click", () => byId("dialog-help").showModal());
byId("own-camera").addEventListener("change", (event) => startCamera(event.target.value));
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  link.use(byId("token").value);
});

function toggleFaces() {
  seen.showFaces = !seen.showFaces;
  byId("faces").classList.toggle("shown", seen.showFaces);
  draw();
}

holdable(byId("compare"), () => hold(true), () => hold(false));
listenToKeys({
  blank,
  l: live,
  b: hold,
  r: record,
  p: () => photos.pick(),
  f: toggleFaces,
  m: () => setMirror(!seen.mirrored),
  "?": () => byId("dialog-help").showModal(),
});
addEventListener("pagehide", () => peer.leave());
addEventListener("pageshow", (event) => event.persisted && peer.retry());

writeHelp();
setInterval(everySecond, 1000);
draw();
link.start();
