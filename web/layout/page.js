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
