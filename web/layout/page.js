"use strict";
(() => {
  const two = (n) => String(n).padStart(2, "0");
  // Local time stands beside UTC, where they differ.
  const local = (root) => {
    for (const e of root.querySelectorAll("[data-local]")) {
      const at = new Date(e.dataset.local);
      if (!isNaN(at) && at.getTimezoneOffset() !== 0) {
        e.textContent = "(" + two(at.getHours()) + ":" + two(at.getMinutes()) + " local)";
      }
    }
    for (const e of root.querySelectorAll("time[title]")) {
      const at = new Date(e.dateTime);
      if (!isNaN(at)) e.title = e.dateTime + " (local: " + at.toLocaleString() + ")";
    }
  };
  local(document);

  // Ages go on by themselves, by the server's clock: the page need not be made anew for them.
  const span = (s) => { // as zkmodel/listing has it
    if (s < 60) return s + "s";
    if (s < 600) return Math.floor(s / 60) + "m " + s % 60 + "s";
    if (s < 3600) return Math.floor(s / 60) + "m";
    if (s < 86400) return Math.floor(s / 3600) + "h " + Math.floor(s / 60) % 60 + "m";
    return Math.floor(s / 86400) + "d " + Math.floor(s / 3600) % 24 + "h";
  };
  const clock = () => Date.parse(document.getElementById("now").dateTime);
  let made = clock(), since = performance.now();
  setInterval(() => {
    if (document.hidden) return;
    for (const e of document.querySelectorAll("time[data-age]")) {
      const at = Date.parse(e.dateTime), age = Math.floor((made + performance.now() - since - at) / 1000);
      if (age >= 0 && e.textContent !== span(age)) e.textContent = span(age);
    }
  }, 5000);

  // Live: when a part of the tree changes that the page is made of, what differs is replaced.
  const parts = (document.body.dataset.live || "").split(" ").filter(Boolean);
  let busy = false, again = false, last = 0, heard = new Date();
  // What is shown is as old as the last answer, and says so where there is no newer one.
  const old = (why) => {
    const note = document.getElementById("old") || document.createElement("p");
    note.id = "old";
    note.className = "note";
    note.textContent = why + " What follows is of " + heard.toISOString().slice(0, 19).replace("T", " ") + " UTC.";
    document.getElementById("notes").append(note);
    document.getElementById("news").textContent = why;
  };
  const within = (part, node) => node && part.contains(node);
  const replace = (old, part) => {
    if (old.isEqualNode(part)) return;
    const chosen = getSelection();
    if (!chosen.isCollapsed && within(old, chosen.anchorNode)) return; // it is being copied
    const at = document.activeElement, link = within(old, at) && at.getAttribute("href");
    old.replaceWith(part);
    if (link) {
      const same = [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === link);
      if (same) same.focus({ preventScroll: true });
    }
  };
  const swap = (fresh) => {
    local(fresh);
    if (document.title !== fresh.title) document.title = document.getElementById("news").textContent = fresh.title;
    for (const id of ["ready", "now", "notes"]) replace(document.getElementById(id), document.adoptNode(fresh.getElementById(id)));
    const main = document.querySelector("main"), now = fresh.querySelector("main");
    const names = (root) => [...root.querySelectorAll("[data-part]")].map((e) => e.id).join(" ");
    if (names(main) !== names(now)) {
      replace(main, document.adoptNode(now));
      return;
    }
    for (const part of now.querySelectorAll("[data-part]")) replace(document.getElementById(part.id), document.adoptNode(part));
  };
  const load = async () => {
    if (document.hidden || busy || Date.now() - last < 600) {
      if (!again) { again = true; setTimeout(() => { again = false; load(); }, document.hidden ? 5000 : 600); }
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(20000) });
      if (answer.ok) {
        swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
        heard = new Date();
        made = clock();
        since = performance.now();
      } else old(answer.status === 404 ? "What this page is about is gone." : "The page cannot be made anew: status " + answer.status + ".");
    } catch (e) { old("The daemon does not answer."); } // the stream tells when it does
    last = Date.now();
    busy = false;
  };
  if (parts.length && window.EventSource) {
    let stream = null, known = false;
    const listen = () => {
      if (stream || document.hidden) return;
      stream = new EventSource("/live");
      stream.onopen = () => { if (known) load(); known = true; };
      stream.addEventListener("changed", (e) => { if (e.data.split(" ").some((p) => p === "session" || parts.includes(p))) load(); });
      stream.onerror = () => {
        if (stream.readyState === 2) { stream = null; setTimeout(listen, 30000); }
        load(); // or it says that there is no answer
      };
    };
    listen();
    // A browser has six connections to a server for all its windows: one that nobody sees gives its own back.
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) { listen(); load(); } else if (stream) { stream.close(); stream = null; }
    });
    // What goes on without a change of the tree: what is fresh becomes stale.
    setInterval(() => { if (!document.hidden) load(); }, 300000);
  }

  // Keys: / searches, g and a letter goes to a page of the navigation.
  let going = false;
  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return;
    if (event.key === "/") {
      const box = document.querySelector("input[type=search]");
      if (box) { event.preventDefault(); box.focus(); }
    } else if (going) {
      going = false;
      for (const a of document.querySelectorAll(".top nav a")) {
        if (a.textContent[0].toLowerCase() === event.key) { a.click(); break; }
      }
      return;
    }
    going = event.key === "g";
  });
})();
