/** Short hands for the document; knows nothing of the run. */

/** The element of this id; a page without it is broken, so it throws. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** A new element: its attributes (`class`, `type`, `aria-…`), then its children, elements or text. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** A sign of the sprite in index.html. */
export function sign(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "i");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#${name}`);
  svg.append(use);
  return svg;
}

/** Write text only where it differs: a live region is read out for each write. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Fill a select with `{value, words, usable}`, keeping it as it is where nothing changed. */
export function offer(select, choices, chosen) {
  const signature = JSON.stringify(choices);
  if (select.dataset.choices !== signature) {
    select.dataset.choices = signature;
    select.replaceChildren(
      ...choices.map((choice) => make("option", { value: choice.value, disabled: choice.usable === false }, choice.words)),
    );
  }
  if (document.activeElement !== select || select.value !== chosen) select.value = chosen;
}
