/** What a refusing answer of the server says, for people. */

/** Why the server refused, in its own words: JSON with `error` and `try`. */
export async function reasonOf(answer) {
  const body = await answer.text().catch(() => "");
  try {
    const said = JSON.parse(body);
    if (said.error) return sentence(said.error) + (said.try ? ` ${sentence(said.try)}` : "");
  } catch {
    // No JSON: the status has to do.
  }
  return `The server answered ${answer.status}.`;
}

function sentence(text) {
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
