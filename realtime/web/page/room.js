/** Where pictures come from and go to, what makes the face, and what really runs: shows the run's state, sends orders. */
import { byId, make, offer, say, sign } from "./dom.js";

/** A choice that is not in its own list is still shown: what runs is what is true. */
function withCurrent(choices, current) {
  return choices.some((choice) => choice.value === current) ? choices : [{ value: current, words: current }, ...choices];
}

/** Everything of the panel that is no slider and no photo. */
export class Room {
  #send;

  constructor(send) {
    this.#send = send;
    byId("engine").addEventListener("change", (event) => send({ do: "set", key: "swap.engine", value: event.target.value }));
    byId("input").addEventListener("change", (event) => send({ do: "input", what: event.target.value }));
    this.#listenToOutputs();
    this.#listenToSaving();
  }

  /** Show it. */
  show(state) {
    const engine = String(state.values["swap.engine"] ?? "");
    offer(byId("engine"), withCurrent(state.engines, engine), engine);
    offer(byId("input"), withCurrent(state.inputs, state.input), state.input);
    say(byId("sender"), state.sender ? `Pictures come from ${state.sender}.` : "");
    this.#showOutputs(state.outputs);
    const watching = state.viewers.length;
    say(byId("viewers"), watching ? `Watching by network: ${state.viewers.join(", ")}` : "");
    this.#showFacts(state.facts);
    byId("profiles").replaceChildren(...state.profiles.map((name) => make("option", { value: name })));
    say(byId("save-fine"), state.profiles.length ? `There are: ${state.profiles.join(", ")}. The same name replaces one.` : "");
  }

  /** Add what this page measures to what the run says. */
  showLine(line) {
    say(byId("line"), line);
  }

  #showOutputs(outputs) {
    const signature = JSON.stringify(outputs);
    const list = byId("outputs");
    if (list.dataset.outputs === signature) return;
    list.dataset.outputs = signature;
    list.replaceChildren(...outputs.map((output) => this.#outputRow(output)));
    if (!outputs.length) list.append(make("li", { class: "none" }, "Nowhere yet but on this page."));
  }

  #outputRow(output) {
    const words = make("div", {}, make("b", {}, output.name));
    if (output.failed) words.append(make("p", { class: "why" }, output.failed));
    const close = make("button", { type: "button", class: "plain icon", "aria-label": `Stop showing it in ${output.name}`, title: "Remove" }, sign("i-close"));
    close.addEventListener("click", () => this.#send({ do: "remove_output", name: output.name }));
    return make("li", { class: output.failed ? "failed" : "" }, make("span", { class: "lamp", "aria-hidden": "true" }), words, close);
  }

  #showFacts(facts) {
    const signature = JSON.stringify(facts);
    const list = byId("facts");
    if (list.dataset.facts === signature) return;
    list.dataset.facts = signature;
    list.replaceChildren(...facts.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)]));
  }

  #listenToOutputs() {
    const kind = byId("output-kind");
    const to = byId("output-to");
    kind.addEventListener("change", () => {
      byId("output-other").hidden = kind.value !== "other";
      if (kind.value === "other") to.focus();
    });
    byId("add-output").addEventListener("submit", (event) => {
      event.preventDefault();
      const what = kind.value === "other" ? to.value.trim() : kind.value;
      if (!what) return to.focus();
      this.#send({ do: "add_output", to: what });
      to.value = "";
    });
  }

  #listenToSaving() {
    const dialog = byId("dialog-save");
    byId("save").addEventListener("click", () => dialog.showModal());
    byId("save-cancel").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      const profile = byId("profile").value.trim();
      if (dialog.returnValue === "save" && profile) this.#send({ do: "save", profile });
      dialog.returnValue = "";
    });
  }
}
