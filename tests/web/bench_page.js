/* What the tests put into a page before its own scripts run: reads the numbers in pictures; changes nothing on the page.
 * `bench.sent` and `bench.shown` are lists of [milliseconds since 1970, number], oldest first. */
"use strict";

(() => {
  const place = { columns: 20, rows: 4, block: 16, width: 1280, height: 720 };
  const leastContrast = 48;
  const bench = { sent: [], shown: [], decoded: [], unreadable: 0, peers: [], marks: {}, errors: [] };
  window.bench = bench;

  bench.now = () => performance.timeOrigin + performance.now();

  /* The luma of the corner alone: nothing else of the picture is copied. */
  async function corner(frame) {
    const { width, height } = frame.visibleRect;
    const wanted = {
      width: Math.ceil((place.columns * place.block * width) / place.width / 2) * 2,
      height: Math.ceil((place.rows * place.block * height) / place.height / 2) * 2,
    };
    const rect = { x: 0, y: height - wanted.height, ...wanted };
    const data = new Uint8Array(frame.allocationSize({ rect }));
    const [luma] = await frame.copyTo(data, { rect });
    return { data, offset: luma.offset, stride: luma.stride, ...wanted };
  }

  function mean(part, column, row) {
    const [w, h] = [part.width / place.columns, part.height / place.rows];
    let [sum, count] = [0, 0];
    for (let y = Math.floor((row + 0.25) * h); y < (row + 0.75) * h; y++)
      for (let x = Math.floor((column + 0.25) * w); x < (column + 0.75) * w; x++) {
        sum += part.data[part.offset + y * part.stride + x];
        count++;
      }
    return sum / count;
  }

  async function read(frame) {
    if (!frame.format || !/^(I420|NV12)/.test(frame.format)) return null;
    const part = await corner(frame);
    let number = 0;
    for (let bit = 0; bit < 2 * place.columns; bit++) {
      const [row, column] = [Math.floor(bit / place.columns), bit % place.columns];
      const difference = mean(part, column, row) - mean(part, column, row + 2);
      if (Math.abs(difference) < leastContrast) return null;
      if (difference > 0) number += 2 ** bit;
    }
    return number;
  }

  /* Every picture of a track, before any compositor sees it. */
  async function follow(track, list) {
    const reader = new MediaStreamTrackProcessor({ track: track.clone(), maxBufferSize: 1 }).readable.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const t = bench.now();
      const number = await read(value).catch(() => null);
      value.close();
      if (number === null) bench.unreadable++;
      else bench[list].push([t, number]);
    }
  }

  /* Every picture that an element shows. */
  bench.watch = (video) => {
    const next = async () => {
      const t = bench.now();
      bench.marks.first ??= t;
      const frame = new VideoFrame(video, { timestamp: 0 });
      video.requestVideoFrameCallback(next);
      const number = await read(frame).catch((error) => (bench.errors.push(String(error)), null));
      frame.close();
      if (number === null) bench.unreadable++;
      else bench.shown.push([t, number]);
    };
    video.requestVideoFrameCallback(next);
  };

  /* The camera that any page asks for is followed. */
  if (navigator.mediaDevices) {
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wish) => {
      const stream = await ask(wish);
      for (const track of stream.getVideoTracks()) follow(track, "sent");
      return stream;
    };
  }
  const Plain = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Plain {
    constructor(...given) {
      super(...given);
      bench.peers.push(this);
    }
  };

  const gathered = (pc) =>
    new Promise((resolve) => {
      const look = () => pc.iceGatheringState === "complete" && resolve();
      pc.addEventListener("icegatheringstatechange", look);
      setTimeout(resolve, 2000);
      look();
    });

  function prefer(transceiver, codec) {
    const all = RTCRtpReceiver.getCapabilities("video").codecs;
    const liked = (one) => one.mimeType.toLowerCase() === `video/${codec}`;
    transceiver.setCodecPreferences([...all.filter(liked), ...all.filter((one) => !liked(one))]);
  }

  /* A plain page's way to a server: one offer up, one answer down.
   * wish: {path, send, codec, hurry, token, before, after}; the last two rewrite the descriptions. */
  bench.connect = async (wish) => {
    bench.marks.click = bench.now();
    const camera = wish.send ? await navigator.mediaDevices.getUserMedia({ video: { width: 1280, height: 720, frameRate: 30 } }) : null;
    const pc = new RTCPeerConnection();
    const transceiver = pc.addTransceiver(camera ? camera.getVideoTracks()[0] : "video", { direction: camera ? "sendrecv" : "recvonly" });
    if (wish.codec) prefer(transceiver, wish.codec);
    if (wish.hurry) {
      transceiver.receiver.jitterBufferTarget = 0;
      if (camera) {
        const parameters = transceiver.sender.getParameters();
        parameters.degradationPreference = "maintain-resolution";
        await transceiver.sender.setParameters(parameters);
      }
    }
    pc.ontrack = ({ track }) => {
      const video = document.querySelector("video");
      bench.watch(video);
      if (wish.decoded) follow(track, "decoded");
      video.srcObject = new MediaStream([track]);
    };
    await pc.setLocalDescription();
    await gathered(pc);
    const headers = { "Content-Type": "application/sdp", ...(wish.token ? { Authorization: `Bearer ${wish.token}` } : {}) };
    const body = wish.before ? await window[wish.before](pc.localDescription.sdp) : pc.localDescription.sdp;
    const answer = await fetch(wish.path, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    const sdp = await answer.text();
    await pc.setRemoteDescription({ type: "answer", sdp: wish.after ? await window[wish.after](sdp) : sdp });
    return answer.headers.get("Location");
  };

  /* Sums since the connection began: those of the last peer connection. */
  bench.stats = async () => {
    const found = {};
    (await bench.peers.at(-1).getStats()).forEach((one) => {
      if (one.kind === "video" && /^(inbound|outbound)-rtp$/.test(one.type)) found[one.type.slice(0, -4)] = one;
      if (one.type === "candidate-pair" && one.nominated) found.pair = one;
    });
    return found;
  };

  /* What was seen since the last call. */
  bench.take = () => {
    const taken = { sent: bench.sent, shown: bench.shown, decoded: bench.decoded, unreadable: bench.unreadable, marks: bench.marks };
    [bench.sent, bench.shown, bench.decoded] = [[], [], []];
    bench.unreadable = 0;
    return taken;
  };
})();
