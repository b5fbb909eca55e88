// Sends a film to a WHIP server the way OBS 32 does: libdatachannel, one POST without candidates, 201 and Location or
// nothing, H.264 and Opus only, no answer to a request for a keyframe, DELETE at the end.
//
// node client.mjs '{"url": "http://.../whip", "token": "", "film": "film.bin", "seconds": 5}'
// The film is records of [kind: 1 byte, 0 picture, 1 sound][microseconds: u32][length: u32][data], little endian,
// and is sent again and again. Each line of the output is one event in JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const wish = JSON.parse(process.argv[2]);
const lib = createRequire(`${process.env.WHIP_CLIENT_MODULES}/`)("node-datachannel");
const tell = (event, more = {}) => console.log(JSON.stringify({ event, t_s: Date.now() / 1000, ...more }));
const headers = { "Content-Type": "application/sdp", ...(wish.token ? { Authorization: `Bearer ${wish.token}` } : {}) };

function readFilm(path) {
  const data = readFileSync(path);
  const records = [];
  for (let at = 0; at < data.length; ) {
    const [kind, us, length] = [data[at], data.readUInt32LE(at + 1), data.readUInt32LE(at + 5)];
    records.push({ kind, us, data: data.subarray(at + 9, at + 9 + length) });
    at += 9 + length;
  }
  return records;
}

function addSound(pc) {
  const media = new lib.Audio("0", "SendOnly");
  media.addOpusCodec(111);
  media.addSSRC(1001, "obs", "obs-stream", "obs-audio");
  const track = pc.addTrack(media);
  const config = new lib.RtpPacketizationConfig(1001, "obs", 111, 48000);
  const handler = new lib.RtpPacketizer(config);
  handler.addToChain(new lib.RtcpSrReporter(config));
  handler.addToChain(new lib.RtcpNackResponder());
  track.setMediaHandler(handler);
  return { track, config, clock: 48000 };
}

function addPictures(pc) {
  const media = new lib.Video("1", "SendOnly");
  media.addH264Codec(96, "profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1");
  media.addSSRC(1002, "obs", "obs-stream", "obs-video");
  const track = pc.addTrack(media);
  const config = new lib.RtpPacketizationConfig(1002, "obs", 96, 90000);
  const handler = new lib.H264RtpPacketizer("StartSequence", config, 1200);
  handler.addToChain(new lib.RtcpSrReporter(config));
  handler.addToChain(new lib.RtcpNackResponder());
  track.setMediaHandler(handler);
  return { track, config, clock: 90000 };
}

async function post(offer) {
  const answer = await fetch(wish.url, { method: "POST", headers, body: offer, redirect: "follow" });
  tell("answered", { status: answer.status });
  if (answer.status !== 201 || !answer.headers.get("Location")) {
    tell("refused", { text: await answer.text() });
    process.exit(3);
  }
  return { sdp: await answer.text(), place: new URL(answer.headers.get("Location"), answer.url) };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

async function send(film, tracks, begun_ms) {
  const length_us = Math.max(...film.map((one) => one.us)) + 33333;
  for (let round = 0; ; round++) {
    let number = 0;
    for (const one of film) {
      const us = one.us + round * length_us;
      if (us > wish.seconds * 1e6) return;
      await sleep(begun_ms + us / 1000 - performance.now());
      const { track, config, clock } = tracks[one.kind];
      if (!track.isOpen()) return;
      config.timestamp = Math.floor((us * clock) / 1e6) >>> 0;
      if (one.kind === 0) tell("sent", { number: number++ });
      track.sendMessageBinary(one.data);
    }
  }
}

let leaving = false;
const pc = new lib.PeerConnection("obs", { iceServers: [], disableAutoNegotiation: true });
const sound = addSound(pc);
const pictures = addPictures(pc);
const open = new Promise((resolve) => pictures.track.onOpen(resolve));
pc.onStateChange((state) => {
  tell("state", { state });
  if (!leaving && ["failed", "closed", "disconnected"].includes(state)) process.exit(4);
});
const described = new Promise((resolve) => pc.onLocalDescription((sdp) => resolve(sdp)));
pc.setLocalDescription("offer");
const offer = (await described).split("\r\n").filter((line) => !line.startsWith("a=candidate") && line !== "a=end-of-candidates").join("\r\n");
const { sdp, place } = await post(offer);
pc.setRemoteDescription(sdp, "answer");
await open;
tell("open");
await send(readFilm(wish.film), [pictures, sound], performance.now());
leaving = true;
const gone = await fetch(place, { method: "DELETE", headers });
tell("deleted", { status: gone.status });
process.exit(0);
