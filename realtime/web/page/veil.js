/** What covers the stage, and why: one pure function from what is known to what is said. */

/** How the run's computer is called. */
function where(host) {
  return /^(localhost|127\.|\[?::1)/.test(host) ? "this computer" : host;
}

/**
 * The veil: `null` where the picture is shown, else `{kind, title, text, fine, go, act, token, steps}`; `go` is the
 * label of its button and `act` what that does.
 *
 * @param {object} seen online, everOnline, denied, state, camera ({track, error, asking, forbidden}), playing, host
 */
export function veilFor(seen) {
  const { state, camera } = seen;
  if (seen.denied) {
    return { kind: "token", title: "This page needs a token", text: seen.denied, token: true };
  }
  if (!seen.online) return lost(seen);
  if (!state) return { kind: "wait", title: "Connecting" };
  if (state.blank) {
    return {
      kind: "blank", title: "You are hidden", text: "Everybody sees a card instead of the picture, in every output.",
      go: "Show the picture again", act: "live", fine: "or press L",
    };
  }
  const mine = state.input === "browser" && !(state.sender && !camera.track);
  if (mine && !camera.track) return askForCamera(seen);
  if (!seen.playing) return waiting(seen, mine);
  return null;
}

function lost({ everOnline, pendingBlank }) {
  if (pendingBlank) {
    return { kind: "blank", title: "Your camera is covered", text: "The line to doppelcam is down. It hides the picture as soon as the line is back.", go: "Show the picture again", act: "live" };
  }
  return everOnline
    ? { kind: "lost", title: "Connection lost", text: "Trying again by itself. Others keep seeing the last picture, or what you chose for a lost face." }
    : { kind: "lost", title: "Looking for doppelcam", text: "It starts with “doppelcam serve”. This page goes on by itself as soon as it is there." };
}

/** The whole way for somebody who sees this for the first time. */
function steps({ state }) {
  const virtual = state.outputs.some((output) => output.to.startsWith("virtualcam") && !output.failed);
  return ["Start the camera", "Choose a face", virtual ? "Pick the virtual camera in your meeting" : "Choose where it is shown"];
}

function askForCamera(seen) {
  const { camera, host } = seen;
  if (camera.asking) return { kind: "wait", title: "May this page use your camera?", text: "Your browser asks you now. Choose “Allow”." };
  const error = camera.error ?? camera.forbidden;
  if (error) return { kind: "error", title: error.title, text: error.hint, go: camera.forbidden ? "" : "Try again", act: "start" };
  return {
    kind: "start", title: "See yourself with another face", go: "Start camera", act: "start", steps: steps(seen),
    fine: `Your picture goes to doppelcam on ${where(host)}, and from there only to what is listed under “Shown in”.`,
  };
}

function waiting({ peer, refused }, mine) {
  if (refused) return { kind: "lost", title: "No picture yet", text: `${refused} Trying again.` };
  if (peer === "lost") return { kind: "lost", title: "The picture was interrupted", text: "Connecting again." };
  return { kind: "wait", title: mine ? "Putting the face on" : "Waiting for the picture" };
}
