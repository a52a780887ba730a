// Questions: the answer streams in, its marks open the sources, follow-ups keep the conversation (in this tab only).
import { announce, element, events, searchParams, show } from "./tools.js";
import { filterParams, refreshFilters, startFilters } from "./search.js";

const KEPT = "conversation";
const MOST_TURNS = 20; // that the server takes
const box = document.getElementById("q");
const thread = document.getElementById("thread");
const head = document.getElementById("thread-head");
const start = document.getElementById("ask-start");
let turns = load();
let running = null;

export function startAsk() {
  document.getElementById("box").addEventListener("submit", (event) => {
    if (event.submitter?.id !== "ask-button" && !enter) {
      const params = filterParams();
      event.preventDefault();
      params.set("q", box.value);
      location.assign(`/?${params}`);
      return;
    }
    event.preventDefault();
    enter = false;
    submit(box.value.trim());
  });
  box.addEventListener("keydown", (event) => {
    enter = event.key === "Enter" && !event.isComposing; // on this page Enter asks; the button Search searches
  });
  document.getElementById("reset").addEventListener("click", reset);
  startFilters((params) => {
    const q = searchParams().get("q");
    if (q) params.set("q", q);
    history.pushState({}, "", params.size ? `?${params}` : location.pathname);
    refreshFilters(params);
  });
  window.addEventListener("popstate", fromAddress);
  draw();
  fromAddress();
}

let enter = false;

function submit(question) {
  if (!question) return;
  const params = searchParams();
  params.set("q", question);
  history.pushState({}, "", `?${params}`);
  ask(question);
}

// A question of the address that was answered in this tab is shown again, not asked again.
function fromAddress() {
  const question = searchParams().get("q") ?? "";
  box.value = question;
  if (!question) {
    draw();
    if (!location.search) box.focus();
    return;
  }
  const known = turns.findLastIndex((t) => t.turn.question === question);
  if (known >= 0) {
    draw();
    thread.children[turns.length - 1 - known]?.scrollIntoView({ block: "start" });
  } else if (running?.question !== question) {
    ask(question);
  }
}

function draw() {
  thread.replaceChildren(...turns.map(({ turn, html }) => item(turn.question, html)).reverse());
  head.hidden = !turns.length;
  start.hidden = Boolean(turns.length || running);
}

function item(question, html) {
  const made = element("li", { class: "turn-item" });
  made.append(element("h2", {}, question));
  const body = element("div", { class: "turn-body" });
  show(body, html);
  made.append(body);
  return made;
}

async function ask(question) {
  running?.control.abort();
  const control = new AbortController();
  const mine = (running = { question, control });
  draw();
  const made = element("li", { class: "turn-item" });
  const body = element("div", { class: "turn-body" });
  const answer = element("div", { class: "answer" });
  const text = element("p", { class: "answer-text" });
  const stop = element("button", { class: "button", type: "button" }, "Stop");
  const waiting = element("p", { class: "waiting" }, "Reading your documents …");
  answer.append(waiting);
  body.append(answer, element("p", { class: "more" }));
  body.lastChild.append(stop);
  made.append(element("h2", {}, question), body);
  thread.prepend(made);
  start.hidden = true;
  window.scrollTo({ top: 0 });
  stop.addEventListener("click", () => control.abort());
  const filters = {};
  for (const [name, value] of filterParams()) name === "tag" ? (filters.tag = [...(filters.tag ?? []), value]) : (filters[name] = value);
  const wanted = { question, filters, turns: turns.slice(-MOST_TURNS).map((t) => t.turn) };
  let done = null;
  try {
    await events("/fragments/ask", wanted, (name, data) => {
      if (name === "token") {
        if (!text.isConnected) answer.replaceChildren(text);
        text.classList.add("cursor");
        text.textContent += data.text;
      } else if (name === "done") done = data;
      else if (name === "error") throw new Error([data.message, data.remedy].filter(Boolean).join(" "));
    }, control.signal);
    if (!done) throw new Error("The answer broke off.");
    turns.push(done);
    save();
    show(body, done.html);
    announce("The answer is there.");
    box.select();
  } catch (error) {
    failed(body, answer, error, () => (made.remove(), ask(question)));
  } finally {
    if (running === mine) running = null;
    head.hidden = !turns.length;
  }
}

function failed(body, answer, error, again) {
  const stopped = error.name === "AbortError";
  answer.classList.add("failed");
  answer.querySelector(".cursor")?.classList.remove("cursor");
  answer.querySelector(".waiting")?.remove();
  answer.prepend(element("p", { class: "mode", role: stopped ? "status" : "alert" }, stopped ? "Stopped" : "No answer"));
  if (!stopped) answer.append(element("p", { class: "answer-text" }, error.message));
  const retry = element("button", { class: "button", type: "button" }, "Ask again");
  retry.addEventListener("click", again);
  const line = element("p", { class: "more" });
  line.append(retry);
  body.replaceChildren(answer, line);
}

function reset() {
  running?.control.abort();
  turns = [];
  save();
  const params = filterParams();
  history.pushState({}, "", params.size ? `?${params}` : location.pathname);
  box.value = "";
  draw();
  start.hidden = false;
  box.focus();
  announce("The conversation begins anew.");
}

function load() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return []; // storage is switched off or holds something else: the conversation begins anew
  }
}

function save() {
  turns = turns.slice(-MOST_TURNS);
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(turns));
  } catch {
    announce("The conversation will not outlast this page."); // storage is full or switched off
  }
}
