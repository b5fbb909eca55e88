/** What settings are called, for people who have never seen the settings file; a key that is not here still works. */

/** By key: name; `ends` of a slider; `note`; `choices` where the run
 * names none; `group`: look, faces, network. Their order is the order on the page. */
export const SETTINGS = {
  "swap.likeness": { group: "look", name: "Likeness", ends: ["your own shape", "the photo"] },
  "swap.opacity": { group: "look", name: "Blend", ends: ["your own face", "the new one"] },
  "swap.colour": { group: "look", name: "Skin and light", ends: ["as in the photo", "as in your room"] },
  "tracking.smoothing": { group: "look", name: "Smoothing", ends: ["quick", "steady"] },
  "swap.own_mouth": { group: "look", name: "Keep my own mouth" },
  "swap.obstacles": { group: "look", name: "Keep hands and cups in front" },
  "faces.which": { group: "faces", name: "Whose face", choices: ["largest", "all", "1", "2", "3", "4", "5", "6", "7", "8"] },
  "faces.on_lost": { group: "faces", name: "When a face is lost" },
  "faces.hold_s": { group: "faces", name: "Before that, hold the last picture" },
  "swap.boost": { group: "network", name: "Sharpness", note: "With a network: how many times its own size it works at." },
  "swap.morph": { group: "network", name: "Morph", ends: ["you", "who it was trained on"] },
  "swap.blend": { group: "network", name: "Edge" },
  "masks.occlusion": { group: "network", name: "Model that sees what is in front" },
  "masks.regions": { group: "network", name: "Model that tells skin from hair" },
  "enhance.model": { group: "network", name: "Model that makes it finer" },
  "enhance.amount": { group: "network", name: "How much finer" },
  "enhance.fidelity": { group: "network", name: "Finer, but", ends: ["finest", "most alike"] },
};

/** Settings with a place of their own on the page. */
export const ELSEWHERE = new Set(["swap.engine"]);

const CHOICES = {
  "faces.which": { largest: "The largest face", all: "Every face" },
  "faces.on_lost": {
    blur: "Blur the picture",
    card: "Show a card",
    hold: "Keep the last picture",
    raw: "Show the camera's picture (may show you)",
  },
  "swap.blend": { feather: "Soft", poisson: "Seamless, slower" },
};

/** The value of a choice, for people. */
export function wordsOfChoice(key, value) {
  const known = CHOICES[key]?.[value];
  if (known) return known;
  if (key === "faces.which" && /^\d+$/.test(value)) return value === "1" ? "One face" : `Up to ${value} faces`;
  return value === "" ? "None" : value;
}

/** The name of a key: "swap.own_mouth" is "Own mouth" where nobody has named it. */
export function nameOf(key) {
  const bare = key.split(".").pop().replace(/_(s|ms|px|hz)$/, "").replaceAll("_", " ");
  return SETTINGS[key]?.name ?? bare[0].toUpperCase() + bare.slice(1);
}

/** A number with its unit: shares as per cent, seconds by the ending of their key. */
export function numberInWords(key, value, limits) {
  if (limits.low === 0 && limits.high === 1) return `${Math.round(100 * value)} %`;
  if (key.endsWith("_s")) return `${value} s`;
  if (key.endsWith("_ms")) return `${value} ms`;
  return String(value);
}

/** Steps of a picture's way, for people. */
const STEPS = {
  locate: "Locate", detect: "Find faces", mesh: "Follow face", judge: "Check", draw: "Draw", settle: "Settle",
  network: "Network", mask: "Mask", tone: "Colours", paste: "Paste", poisson: "Seam", recognise: "Recognise",
  enhance: "Make finer", obstacles: "In front", mouth: "Mouth", outline: "Outline", render: "Render", read: "Read",
};

/** The name of a step. */
export function stepName(step) {
  return STEPS[step] ?? step[0].toUpperCase() + step.slice(1);
}

/** Keys, for the help and for the tests. */
export const KEYS = [
  [["Esc", "Space"], "Blank now: everybody sees a card"],
  [["L"], "Live again"],
  [["B"], "Hold: see the picture before the swap"],
  [["R"], "Record, and finish the recording"],
  [["P"], "Choose a photo"],
  [["F"], "Frame the faces in view"],
  [["M"], "Mirror the preview"],
  [["?"], "This help"],
];
