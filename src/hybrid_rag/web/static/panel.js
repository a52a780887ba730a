// The source panel. What it shows stands in the address (source, page, rows, start, end), so that the back button closes it.
import { PANEL, announce, element, fragment, show, showError } from "./tools.js";

const panel = document.getElementById("panel");
const narrow = matchMedia("(max-width: 1180px)");
let opener = null;
let shown = "";
let loading = null;

const wanted = () => {
  const all = new URLSearchParams(location.search);
  const own = new URLSearchParams();
  for (const name of PANEL) if (all.get(name)) own.set(name, all.get(name));
  return own.get("source") ? own.toString() : "";
};

export function startPanel() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-source]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    if (document.body.dataset.page === "source") return;
    event.preventDefault();
    if (!panel.contains(link)) opener = link;
    const params = new URLSearchParams(location.search);
    for (const name of PANEL) params.delete(name);
    for (const [name, value] of new URL(link.href).searchParams) params.set(name, value);
    history.pushState({}, "", `?${params}`);
    sync();
  });
  document.addEventListener("toggle", (event) => loadRelated(event.target), true);
  window.addEventListener("popstate", () => sync());
  narrow.addEventListener("change", () => keepFocusInside());
  if (document.body.dataset.page !== "source") sync();
}

async function loadRelated(details) {
  if (!details.open || !details.dataset?.load || details.dataset.done) return;
  details.dataset.done = "1";
  const body = details.querySelector(".related-body");
  body.textContent = "Looking …";
  try {
    show(body, await fragment(details.dataset.load));
  } catch (error) {
    showError(body, error);
  }
}

// Show what the address says.
async function sync() {
  const query = wanted();
  if (query === shown) return;
  shown = query;
  loading?.abort();
  if (!query) {
    hide();
    return;
  }
  loading = new AbortController();
  open();
  try {
    const html = await fragment(`/fragments/source?${query}`, { signal: loading.signal });
    put(html);
  } catch (error) {
    if (error.name === "AbortError") return;
    put("");
    const place = element("div");
    panel.append(place);
    showError(place, error);
  }
}

function open() {
  document.body.classList.add("with-panel");
  panel.hidden = false;
  panel.setAttribute("aria-busy", "true");
  if (!panel.childElementCount) panel.replaceChildren(element("p", { class: "waiting source" }, "Opening …"));
  document.querySelector(".hit.current")?.classList.remove("current");
  opener?.closest(".hit")?.classList.add("current");
  keepFocusInside();
}

function put(html) {
  const bar = element("div", { class: "panel-bar" });
  const whole = element("a", { class: "icon-button", href: `/source?${shown}`, "aria-label": "Open in a page of its own", target: "_blank", rel: "noopener" });
  show(whole, '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M13.5 5H19v5.5M19 5l-8 8M9 6H6.5A1.5 1.5 0 0 0 5 7.5v10A1.5 1.5 0 0 0 6.5 19h10a1.5 1.5 0 0 0 1.5-1.5V15"/></svg>');
  const close = element("button", { class: "icon-button", type: "button", "aria-label": "Close the source" });
  show(close, '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="m6 6 12 12M18 6 6 18"/></svg>');
  close.addEventListener("click", () => closePanel());
  bar.append(whole, close);
  const body = element("div");
  show(body, html);
  panel.replaceChildren(bar, body);
  panel.setAttribute("aria-busy", "false");
  panel.scrollTop = 0;
  const title = panel.querySelector("#source-title");
  title?.focus({ preventScroll: true });
  announce(`Source: ${title?.textContent.trim() ?? ""}`);
  const first = panel.querySelector("mark, tr.passage, .passage");
  if (first && !panel.querySelector(".page-image")) first.scrollIntoView({ block: "center" });
}

export function closePanel() {
  if (panel.hidden) return false;
  const params = new URLSearchParams(location.search);
  for (const name of PANEL) params.delete(name);
  history.pushState({}, "", params.size ? `?${params}` : location.pathname);
  sync();
  return true;
}

function hide() {
  panel.hidden = true;
  panel.replaceChildren();
  document.body.classList.remove("with-panel");
  document.querySelector(".hit.current")?.classList.remove("current");
  keepFocusInside();
  if (opener?.isConnected) opener.focus();
  opener = null;
}

// Where the panel covers the page, the page behind it cannot be reached.
function keepFocusInside() {
  const covering = narrow.matches && !panel.hidden;
  for (const other of document.querySelectorAll(".top, .side, main")) other.inert = covering;
}
