
// A log: lines that are not on the page are found by #L120, and those that are still written
// are added as they come.
(() => {
  const log = document.querySelector("[data-log]");
  if (!log) return;
  const jump = () => {
    const line = /^#L([1-9][0-9]{0,9})$/.exec(location.hash);
    if (line && !document.getElementById("L" + line[1]) && new URLSearchParams(location.search).get("line") !== line[1]) {
      location.replace(log.dataset.log + "?line=" + line[1] + "#L" + line[1]);
    }
  };
  addEventListener("hashchange", jump);
  jump();
  if (!log.dataset.follow || !window.EventSource) return;
  const most = 5000; // lines that stay on the page
  const end = document.querySelector("[data-end]");
  const say = (text) => { end.textContent = text; };
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
  say("The build is running; further lines follow here.");
  if (!location.hash && !location.search) toEnd();
  const lines = new EventSource(log.dataset.follow);
  lines.addEventListener("lines", (event) => {
    const follow = atEnd();
    const rows = document.createElement("template");
    rows.innerHTML = event.data;
    for (const row of rows.content.children) document.getElementById(row.id)?.remove(); // it had no end yet
    log.append(rows.content);
    while (log.childElementCount > most) log.firstElementChild.remove();
    if (follow) toEnd();
  });
  lines.addEventListener("end", () => { lines.close(); say("The build has ended, and its log with it."); });
  lines.addEventListener("again", () => { lines.close(); location.reload(); });
  lines.onerror = () => say(lines.readyState === EventSource.CLOSED
    ? "The log is no longer followed; load the page again." : "The connection was lost; it is tried again.");
  lines.onopen = () => say("The build is running; further lines follow here.");
})();
