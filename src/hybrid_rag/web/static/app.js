// Starts what the page has, and the keys that work everywhere.
import { startSearch } from "./search.js";
import { startAsk } from "./ask.js";
import { startDocuments } from "./documents.js";
import { closePanel, startPanel } from "./panel.js";
import { fieldHasFocus } from "./tools.js";

const box = document.getElementById("q");
const page = document.body.dataset.page;

document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    return; // storage is switched off: the choice holds for this page
  }
});

const side = document.querySelector(".side");
const toggle = document.getElementById("filter-toggle");
toggle?.addEventListener("click", () => toggle.setAttribute("aria-expanded", String(side.classList.toggle("open"))));

startPanel();
if (page === "search") startSearch();
if (page === "ask") startAsk();
if (page === "documents") startDocuments();

const links = () => [...document.querySelectorAll("main .hit-link")].filter((a) => a.offsetParent !== null);

function step(by) {
  const all = links();
  const at = all.indexOf(document.activeElement);
  if (at < 0 && by < 0) return false;
  if (at === 0 && by < 0) {
    box.focus();
    return true;
  }
  const next = all[at < 0 ? 0 : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.metaKey || event.isComposing) return;
  const keys = document.getElementById("keys");
  if (keys.open) return;
  const inBox = document.activeElement === box && box !== null;
  if (event.key === "Enter" && event.ctrlKey && inBox) {
    event.preventDefault();
    document.getElementById("ask-button").click();
  } else if (event.ctrlKey) {
    return;
  } else if (event.key === "Escape") {
    if (closePanel()) event.preventDefault();
    else if (!inBox && box && links().includes(document.activeElement)) box.focus();
  } else if (event.key === "/" && !fieldHasFocus() && box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "?" && !fieldHasFocus()) {
    event.preventDefault();
    keys.showModal();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (inBox || links().includes(document.activeElement))) {
    if (step(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  }
});
