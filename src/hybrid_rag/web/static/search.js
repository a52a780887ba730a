// Search while typing: by words at once, by words and meaning when typing rests. The address says what is searched.
import { announce, fragment, searchParams, show, showError } from "./tools.js";

const KEYWORD_MS = 90; // of rest before the search by words
const HYBRID_MS = 260; // before the one by meaning too
const box = document.getElementById("q");
const form = document.getElementById("box");
const results = document.getElementById("results");
const filters = document.getElementById("filters");
let running = null;
let asked = searchParams().toString(); // what is shown, or on its way

export function startSearch() {
  let typed = 0;
  box.addEventListener("input", () => {
    clearTimeout(typed);
    const now = addressed(box.value, {});
    typed = setTimeout(() => run(now, { push: false }), KEYWORD_MS);
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.id === "ask-button") {
      takeFilters();
      return; // the form goes to its own address, /ask
    }
    event.preventDefault();
    clearTimeout(typed);
    run(addressed(box.value, {}), { push: true, at: 0 });
  });
  startFilters((params) => run(params, { push: true, at: 0, filters: true }));
  results.addEventListener("click", (event) => {
    const more = event.target.closest("a[data-more]");
    const clear = event.target.closest("a[data-clear]");
    if (!more && !clear) return;
    event.preventDefault();
    if (clear) run(new URLSearchParams({ q: box.value }), { push: true, at: 0, filters: true });
    else run(addressed(box.value, { k: more.dataset.more }), { push: true, at: 0, keep: true });
  });
  window.addEventListener("popstate", () => {
    const params = searchParams();
    if (params.toString() === asked) return;
    box.value = params.get("q") ?? "";
    run(params, { push: null, at: 0, filters: true });
  });
  if (!box.value && !location.search) box.focus();
}

// The present address with another query; a new query begins with the first results again.
function addressed(q, changes) {
  const params = searchParams();
  params.delete("k");
  if (q.trim()) params.set("q", q);
  else params.delete("q");
  for (const [name, value] of Object.entries(changes)) params.set(name, value);
  return params;
}

async function run(params, { push, at = HYBRID_MS - KEYWORD_MS, filters: withFilters = false, keep = false }) {
  const query = params.toString();
  if (query === asked && push === false) return;
  asked = query;
  running?.abort();
  const control = (running = new AbortController());
  const address = query ? `?${query}` : location.pathname;
  if (push) history.pushState({}, "", address);
  else if (push === false) history.replaceState({}, "", address);
  document.title = params.get("q") ? `${params.get("q")} · hybrid-rag` : "hybrid-rag";
  results.setAttribute("aria-busy", "true");
  if (withFilters) refreshFilters(params);
  let hybrid = false;
  const get = (mode) => fragment(`/fragments/results?${query}${query ? "&" : ""}mode=${mode}`, { signal: control.signal });
  const put = (html) => {
    if (control.signal.aborted) return;
    const place = keep ? document.activeElement : null;
    show(results, html);
    if (place && !place.isConnected) [...results.querySelectorAll(".hit-link")].at(Number(params.get("k")) - 10)?.focus();
  };
  const words = get("keyword").then((html) => hybrid || put(html), () => null); // what fails here fails again below, and is shown there
  try {
    if (at) {
      await words;
      await new Promise((done) => setTimeout(done, at));
      if (control.signal.aborted) return;
    }
    const html = await get("hybrid");
    hybrid = true;
    put(html);
    results.setAttribute("aria-busy", "false");
    const found = results.querySelectorAll(".hit").length;
    if (params.get("q")) announce(found ? `${found} results` : "Nothing found");
  } catch (error) {
    if (error.name === "AbortError") return;
    results.setAttribute("aria-busy", "false");
    showError(results, error);
  }
}

// ---------------------------------------------------------------- filters, also of the page of answers

export function startFilters(changed) {
  filters.addEventListener("change", () => changed(ofForm()));
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    changed(ofForm());
  });
  filters.addEventListener("click", (event) => {
    const year = event.target.closest("button[data-since]");
    const clear = event.target.closest("a[data-clear]");
    if (!year && !clear) return;
    event.preventDefault();
    if (clear) {
      changed(new URLSearchParams(box.value.trim() ? { q: box.value } : {}));
      return;
    }
    const params = ofForm();
    for (const [name, value] of [["since", year.dataset.since], ["until", year.dataset.until]]) value ? params.set(name, value) : params.delete(name);
    params.delete("recent");
    changed(params);
  });
}

function ofForm() {
  const params = new URLSearchParams();
  if (box.value.trim()) params.set("q", box.value);
  for (const [name, value] of new FormData(document.getElementById("filter-form"))) if (value && name !== "q") params.append(name, value);
  return params;
}

const FILTERS = ["folder", "glob", "kind", "tag", "since", "until", "recent"];

export function filterParams() {
  return new URLSearchParams([...searchParams()].filter(([name, value]) => FILTERS.includes(name) && value));
}

// The filters go with a form that is sent to another page.
export function takeFilters() {
  form.querySelectorAll("input[type=hidden]").forEach((old) => old.remove());
  for (const [name, value] of filterParams()) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    form.append(field);
  }
}

export async function refreshFilters(params) {
  const at = document.activeElement;
  const same = filters.contains(at) ? [at.name, at.value, at.dataset.since] : null;
  try {
    show(filters, await fragment(`/fragments/filters?${params}`));
  } catch (error) {
    showError(filters, error);
    return;
  }
  if (!same) return;
  const fields = [...filters.querySelectorAll("input, button")];
  const again = fields.find((f) => (same[0] ? f.name === same[0] && (f.type === "date" || f.value === same[1]) : f.dataset.since === same[2]));
  (again ?? fields[0])?.focus();
}
