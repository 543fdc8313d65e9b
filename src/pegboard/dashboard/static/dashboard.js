// Live updates, and search while typing. Every page also works without this script.
"use strict";

const times = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const when = new Date(time.dateTime);
    time.textContent = "day" in time.dataset ? when.toLocaleDateString() : when.toLocaleTimeString();
  }
};

// The server renders HTML; the script replaces the old parts with the new ones. A part that has the
// keyboard focus is left alone until the focus moves on, so that nobody loses their place.
const replaceParts = (parts) => {
  for (const [name, html] of Object.entries(parts)) {
    const place = document.querySelector(`[data-part="${name}"]`);
    if (!place || place.querySelector(":focus-visible")) continue;
    const scrolled = place.querySelector(".wide")?.scrollLeft ?? 0;
    const open = [...place.querySelectorAll("details[open][data-key]")].map((e) => e.dataset.key);
    place.innerHTML = html;
    for (const e of place.querySelectorAll("details[data-key]")) e.open = open.includes(e.dataset.key);
    if (scrolled) place.querySelector(".wide").scrollLeft = scrolled;
    times(place);
  }
};

const follow = (names) => {
  const state = document.getElementById("connection");
  const pause = document.getElementById("pause");
  let stream = null;
  const show = (text) => { if (state.textContent !== text) state.textContent = text; };
  const open = () => {
    stream = new EventSource(`/ui/live?parts=${encodeURIComponent(names)}`);
    stream.onopen = () => show("Live");
    stream.onerror = () => show("Reconnecting …");
    stream.onmessage = (message) => replaceParts(JSON.parse(message.data));
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) { stream.close(); show("Paused"); } else { open(); }
  });
  open();
};

const searchWhileTyping = (form) => {
  const results = document.getElementById("results");
  let waiting = 0;
  let requests = 0;
  const search = async () => {
    const words = [...new FormData(form)].filter(([, value]) => value);
    const query = new URLSearchParams(words).toString();
    const mine = ++requests;
    results.classList.add("stale");
    try {
      const answer = await fetch(`/ui/tools/list?${query}`);
      if (answer.status === 401) { location.reload(); return; }
      const html = await answer.text();
      if (mine !== requests || !answer.ok) return;
      results.innerHTML = html;
      history.replaceState(null, "", query ? `/ui/tools?${query}` : "/ui/tools");
    } catch {
      if (mine === requests) results.querySelector("[role=status]").textContent = "The server does not respond.";
    } finally {
      if (mine === requests) results.classList.remove("stale");
    }
  };
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 150); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); search(); });
};

// A page whose element says so is loaded again until nothing changes any more, such as servers that
// are starting. Only that element is replaced, so a form beside it keeps what was typed.
const refresh = () => {
  const place = document.querySelector("[data-refresh]");
  if (!place) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(location.href);
      if (answer.status === 401) { location.reload(); return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(place.id);
      if (fresh && !place.querySelector(":focus-visible")) place.replaceWith(fresh);
    } catch { /* the server is restarting: try again */ }
    refresh();
  }, 1500);
};

times(document);
refresh();
if (document.body.dataset.live) follow(document.body.dataset.live);
const filters = document.getElementById("filters");
if (filters) searchWhileTyping(filters);
// Back to a form as it was filled in; the link alone would open an empty one.
document.getElementById("back")?.addEventListener("click", (event) => {
  if (history.length > 1) { event.preventDefault(); history.back(); }
});
