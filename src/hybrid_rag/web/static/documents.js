// The documents: index now with live progress, upload by drag and drop, filter the list.
import { Told, api, announce, element, fragment, show, showError } from "./tools.js";

const run = document.getElementById("run");
const text = document.getElementById("run-text");
const bar = document.getElementById("run-bar");
const now = document.getElementById("index-now");
const stop = document.getElementById("index-stop");
let source = null;

export function startDocuments() {
  now.addEventListener("click", () => begin({}));
  stop.addEventListener("click", async () => {
    stop.disabled = true;
    text.textContent = "Stopping after the present batch; what is done is kept.";
    await attempt(() => api("/api/index", { method: "DELETE" }));
  });
  if (run.dataset.running === "true") follow();
  startFind();
  startUpload();
}

async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    run.hidden = false;
    text.textContent = error.message;
    announce(error.message);
    return null;
  }
}

async function begin(body) {
  now.disabled = true;
  const state = await attempt(() => api("/api/index", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
  if (state) follow();
  else now.disabled = false;
}

const WORDS = { scan: "Looking for files", read: "Reading", "embed text": "Computing vectors of text", "embed tables": "Computing vectors of tables", optimise: "Tidying up" };

function follow() {
  run.hidden = false;
  stop.hidden = stop.disabled = false;
  stop.disabled = false;
  now.disabled = true;
  source?.close();
  source = new EventSource("/api/index/events");
  source.addEventListener("state", (event) => draw(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) ended();
  });
}

function draw(state) {
  if (!state.running) {
    source.close();
    finish(state);
    return;
  }
  const p = state.progress;
  if (!p) {
    text.textContent = "Starting …";
    bar.removeAttribute("value");
    return;
  }
  const left = p.remaining_seconds ? `, about ${Math.ceil(p.remaining_seconds)} s left` : "";
  text.textContent = `${WORDS[p.stage] ?? p.stage}: ${p.done.toLocaleString("en")} of ${p.total.toLocaleString("en")}${left}`;
  bar.max = Math.max(p.total, 1);
  bar.value = p.done;
}

function finish(state) {
  bar.max = bar.value = 1;
  const c = state.report?.counts ?? {};
  if (state.error) text.textContent = [state.error.message, state.error.remedy].filter(Boolean).join(" ");
  else if (state.cancelled) text.textContent = "Stopped; what was done is kept.";
  else text.textContent = `Done: ${c.added ?? 0} new, ${c.changed ?? 0} changed, ${c.deleted ?? 0} deleted in ${(state.report?.seconds ?? 0).toFixed(1)} s.`;
  ended();
}

async function ended() {
  now.disabled = false;
  stop.hidden = true;
  try {
    const page = new DOMParser().parseFromString(await fragment(`/documents${location.search}`), "text/html");
    for (const id of ["report", "document-list"]) document.getElementById(id).replaceWith(page.getElementById(id));
    document.querySelector(".page-head .lead").replaceWith(page.querySelector(".page-head .lead"));
  } catch (error) {
    showError(document.getElementById("document-list"), error);
  }
}

function startFind() {
  const find = document.getElementById("find");
  let resting = 0;
  let control = null;
  const refresh = async () => {
    control?.abort();
    control = new AbortController();
    const params = new URLSearchParams(find.value.trim() ? { find: find.value } : {});
    history.replaceState({}, "", params.size ? `?${params}` : location.pathname);
    const list = document.getElementById("document-list");
    try {
      show(list, await fragment(`/fragments/documents?${params}`, { signal: control.signal }));
      announce(list.querySelector(".note")?.textContent ?? "No document matches");
    } catch (error) {
      if (error.name !== "AbortError") showError(list, error);
    }
  };
  find.addEventListener("input", () => {
    clearTimeout(resting);
    resting = setTimeout(refresh, 150);
  });
  document.getElementById("find-form").addEventListener("submit", (event) => {
    event.preventDefault();
    refresh();
  });
}

function startUpload() {
  const drop = document.getElementById("drop");
  if (!drop) return;
  const field = document.getElementById("files");
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault()); // a file beside the place must not replace the page
  drop.addEventListener("dragover", () => drop.classList.add("over"));
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    dropped(event.dataTransfer).then(send);
  });
  field.addEventListener("change", () => {
    send([...field.files].map((file) => ({ name: file.name, file })));
    field.value = "";
  });
}

// The files of a drop, those of folders with their path in the folder.
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const found = [];
  for (const entry of entries) await collect(entry, "", found);
  return found;
}

async function collect(entry, folder, found) {
  const name = folder + entry.name;
  if (entry.isFile) {
    found.push({ name, file: await new Promise((done, failed) => entry.file(done, failed)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const part = await new Promise((done, failed) => reader.readEntries(done, failed)); // at most a hundred at a time
    if (!part.length) return;
    for (const inner of part) await collect(inner, `${name}/`, found);
  }
}

async function send(files) {
  const list = document.getElementById("uploads");
  const done = [];
  for (const { name, file } of files) {
    const line = element("li", {}, `${name} …`);
    list.append(line);
    try {
      const { source } = await put(name, file);
      line.className = "good";
      line.textContent = `${source}: uploaded`;
      done.push(source);
    } catch (error) {
      line.className = "bad";
      line.textContent = `${name}: ${error instanceof Told ? error.message : "not sent"}`;
    }
  }
  if (done.length) begin({ paths: done });
}

// Many files are more than one client may send in a minute: then it waits as long as the server says.
async function put(name, file) {
  for (;;) {
    try {
      return await api(`/api/upload?${new URLSearchParams({ name })}`, { method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: file });
    } catch (error) {
      if (!error.after) throw error;
      await new Promise((go) => setTimeout(go, error.after * 1000));
    }
  }
}
