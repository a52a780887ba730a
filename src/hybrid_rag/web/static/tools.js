// Small things that several parts need. HTML comes from this server's templates only, which escape everything of documents.

export class Told extends Error {
  // An error that the server has put into words, as HTML of its own or as message and remedy.
  constructor(message, { html = "", after = 0 } = {}) {
    super(message);
    this.html = html;
    this.after = after; // seconds to wait, when the server has too much to do
  }
}

export async function fragment(url, options = {}) {
  let answer;
  try {
    answer = await fetch(url, { headers: { Accept: "text/html" }, credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Told("The server cannot be reached. Is it still running?");
  }
  if (answer.redirected && new URL(answer.url).pathname === "/login") location.reload();
  const html = await answer.text();
  if (!answer.ok) throw new Told(`The server answered ${answer.status}.`, { html: html.startsWith("{") ? "" : html });
  return html;
}

export async function api(url, options = {}) {
  let answer;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Told("The server cannot be reached. Is it still running?");
  }
  if (answer.status === 401) location.reload();
  const body = await answer.json();
  if (!answer.ok) throw new Told([body.message, body.remedy].filter(Boolean).join(" "), { after: Number(answer.headers.get("Retry-After") ?? 0) });
  return body;
}

export function show(element, html) {
  element.innerHTML = html;
}

export function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

export function showError(place, error) {
  if (error.html) {
    show(place, error.html);
    return;
  }
  const box = element("section", { class: "state error", role: "alert" });
  box.append(element("h2", {}, error.message));
  place.replaceChildren(box);
}

export function announce(text) {
  const place = document.getElementById("announce");
  place.textContent = "";
  requestAnimationFrame(() => (place.textContent = text));
}

export function fieldHasFocus() {
  const at = document.activeElement;
  if (!at || at.isContentEditable) return Boolean(at?.isContentEditable);
  return at.tagName === "TEXTAREA" || at.tagName === "SELECT" || (at.tagName === "INPUT" && !["radio", "checkbox", "button", "submit"].includes(at.type));
}

// Server-sent events of a POST: calls heard(name, data) for each, until the stream ends.
export async function events(url, body, heard, signal) {
  let answer;
  try {
    answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "same-origin", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Told("The server cannot be reached. Is it still running?");
  }
  if (answer.status === 401) location.reload();
  if (!answer.ok) {
    const told = await answer.json();
    throw new Told([told.message, told.remedy].filter(Boolean).join(" "));
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const name = /^event: (.*)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (name && data !== undefined) heard(name, JSON.parse(data));
    }
  }
}

// The parameters of the address that belong to the search, without those of the panel.
export const PANEL = ["source", "page", "rows", "start", "end"];

export function searchParams() {
  const params = new URLSearchParams(location.search);
  for (const name of PANEL) params.delete(name);
  return params;
}
