/** Photos of faces: by drop, paste, file or camera; each is sent once, and shown small for as long as the page is open. */
import { byId, make, say } from "./dom.js";
import { reasonOf } from "./reason.js";
import { toast } from "./toasts.js";

const SIDE_PX = 152;
const MOST = 12;
const MOST_BYTES = 20 * 1024 * 1024;

/** Draws the middle of a picture into a small square. */
async function thumbnail(blob) {
  const canvas = make("canvas", { width: SIDE_PX, height: SIDE_PX, "aria-hidden": "true" });
  const picture = await createImageBitmap(blob);
  const side = Math.min(picture.width, picture.height);
  const [x, y] = [(picture.width - side) / 2, (picture.height - side) / 3];
  canvas.getContext("2d").drawImage(picture, x, y, side, side, 0, 0, SIDE_PX, SIDE_PX);
  picture.close();
  return canvas;
}

/** The row of photos. `use(id)` is called with what the server called the photo; "" is the built-in face. */
export class Photos {
  #link;
  #use;
  #camera;
  #row = byId("photos");

  constructor(link, camera, use) {
    this.#link = link;
    this.#camera = camera;
    this.#use = use;
    const builtIn = make("button", { type: "button", role: "radio", "aria-checked": "false", "data-photo": "", "aria-label": "Built-in face", title: "Built-in face" });
    builtIn.append(make("img", { src: "built-in.jpg", alt: "", width: SIDE_PX / 2, height: SIDE_PX / 2 }));
    builtIn.addEventListener("click", () => this.#choose(builtIn));
    this.#row.append(builtIn);
    this.#row.addEventListener("keydown", (event) => this.#arrows(event));
    this.#listen();
  }

  /** Say which photos the run shows. */
  show(state) {
    say(byId("photo-now"), state.photos.length ? `Shown now: ${state.photos.join(", ")}` : "Shown now: the built-in face");
    const chosen = this.#row.querySelector('[aria-checked="true"]');
    if (!chosen && !state.photos.length) this.#mark(this.#row.firstElementChild);
    else if (!chosen) this.#mark(null);
  }

  /** Open the file picker. */
  pick() {
    byId("photo-file").click();
  }

  /** Send a photo, and show its face as soon as it is there. */
  async add(blob, name = "photo") {
    if (blob.type && !blob.type.startsWith("image/")) return toast(`${name} is no picture`, "Choose a photo: JPEG, PNG or WebP.", true);
    if (blob.size > MOST_BYTES) return toast(`${name} is too large`, "Choose one of less than 20 MB.", true);
    const node = make("button", { type: "button", role: "radio", "aria-checked": "false", "aria-busy": "true", "aria-label": name, title: name });
    this.#row.append(node);
    try {
      node.append(await thumbnail(blob).catch(() => document.createTextNode(name)));
      node.dataset.photo = await this.#upload(blob, name);
      node.removeAttribute("aria-busy");
      node.addEventListener("click", () => this.#choose(node));
      this.#trim();
      this.#choose(node);
    } catch (error) {
      node.remove();
      toast("The photo cannot be used", error.message, true);
    }
  }

  async #upload(blob, name) {
    const form = new FormData();
    form.append("photo", blob, name);
    const answer = await this.#link.fetch("api/photos", { method: "POST", body: form });
    if (!answer.ok) throw new Error(await reasonOf(answer));
    return (await answer.json()).photo;
  }

  #choose(node) {
    this.#mark(node);
    this.#use(node.dataset.photo);
  }

  #mark(node) {
    for (const one of this.#row.children) {
      one.setAttribute("aria-checked", String(one === node));
      one.tabIndex = one === node || (!node && one === this.#row.firstElementChild) ? 0 : -1;
    }
  }

  #trim() {
    while (this.#row.children.length > MOST + 1) this.#row.children[1].remove();
  }

  #arrows(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...this.#row.children].filter((one) => one.dataset.photo !== undefined);
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    this.#choose(next);
  }

  #listen() {
    byId("pick-photo").addEventListener("click", () => this.pick());
    byId("take-photo").addEventListener("click", () => this.#snap());
    byId("photo-file").addEventListener("change", (event) => {
      for (const file of event.target.files) this.add(file, file.name);
      event.target.value = "";
    });
    addEventListener("paste", (event) => {
      const file = [...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"));
      if (file) this.add(file, file.name);
    });
    const drop = byId("drop");
    let depth = 0;
    const over = (change) => {
      depth = Math.max(0, depth + change);
      drop.hidden = depth === 0;
    };
    const isFile = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragenter", (event) => isFile(event) && over(1));
    addEventListener("dragleave", (event) => isFile(event) && over(-1));
    addEventListener("dragover", (event) => isFile(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      over(-depth);
      for (const file of event.dataTransfer.files) this.add(file, file.name);
    });
  }

  /** A photo from the camera of this browser: the one in use, else one that is asked for and given back. */
  async #snap() {
    const dialog = byId("dialog-snap");
    const video = byId("snap-video");
    const borrowed = !this.#camera.track;
    dialog.showModal();
    if (borrowed) await this.#camera.start();
    if (!this.#camera.track) {
      dialog.close();
      const { title, hint } = this.#camera.error;
      if (borrowed) this.#camera.stop();
      toast(title, hint, true);
      return;
    }
    video.srcObject = this.#camera.stream;
    byId("snap-take").disabled = false;
    const end = new AbortController();
    const { signal } = end;
    byId("snap-cancel").addEventListener("click", () => dialog.close(), { signal });
    byId("snap-take").addEventListener("click", () => this.#shoot(video).finally(() => dialog.close()), { signal });
    dialog.addEventListener("close", () => {
      end.abort();
      video.srcObject = null;
      byId("snap-take").disabled = true;
      if (borrowed) this.#camera.stop();
    }, { signal });
  }

  async #shoot(video) {
    const canvas = make("canvas", { width: video.videoWidth, height: video.videoHeight });
    canvas.getContext("2d").drawImage(video, 0, 0);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
    if (blob) this.add(blob, "camera.jpg");
  }
}
