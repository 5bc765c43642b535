// live.js says how old the numbers of a page are, and never lets them look
// live when they are not. The server prints "As of 21:40:02"; this turns it
// into "Live, 0.4 s ago", into "Stale, 7 s" after 6 s without an answer, and
// after 10 s into a notice. It also stops the updates of a hidden tab, and
// prints times in the viewer's zone.
//
// A page without htmx, or without scripts, keeps what the server printed.
"use strict";
(() => {
  const staleAfter = 6000; // ms, three polls
  const noticeAfter = 10000; // ms
  const tick = 200; // ms
  const backFor = 3000; // ms that "Live again" is shown

  const byId = (id) => document.getElementById(id);
  const two = (n) => String(n).padStart(2, "0");
  const clock = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;

  // age prints milliseconds as the server does: 0.3 s, 12 s, 9 min 36 s, 2 h 14 min.
  const age = (ms) => {
    const s = Math.floor(ms / 1000);
    if (s < 10) return `${(Math.floor(Math.max(0, ms) / 100) / 10).toFixed(1)} s`;
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  };

  // stamp prints a time within a day as 21:40, within a week as Thu 18:00,
  // else as 14 Feb.
  const stamp = (d) => {
    const ago = Date.now() - d.getTime();
    const hours = `${two(d.getHours())}:${two(d.getMinutes())}`;
    if (ago < 86400e3) return hours;
    if (ago < 7 * 86400e3) return `${d.toLocaleDateString("en", { weekday: "short" })} ${hours}`;
    return `${d.getDate()} ${d.toLocaleDateString("en", { month: "short" })}`;
  };

  const localTimes = () => {
    for (const t of document.querySelectorAll("time[data-form]")) {
      const d = new Date(t.dateTime);
      const text = t.dataset.form === "clock" ? clock(d) : stamp(d);
      if (t.textContent !== text) t.textContent = text;
    }
  };
  localTimes();
  const regions = [...document.querySelectorAll("[hx-get]")];
  if (!window.htmx || regions.length === 0) return;

  const title = document.title;
  const loaded = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.responseStart ?? 0);
  const answered = new Map(regions.map((r) => [r, loaded])); // region → when it last got an answer, in ms
  let visibleSince = 0; // when the tab was last shown again; silence before that is our own
  let stale = false;
  let noticed = false;
  let backUntil = 0;

  const refresh = () => regions.forEach((r) => r.dispatchEvent(new Event("refresh")));

  document.addEventListener("htmx:before:request", (e) => {
    if (document.hidden) e.preventDefault();
  });
  document.addEventListener("htmx:after:request", (e) => {
    const { sourceElement, response } = e.detail.ctx;
    if (response.status === 200 && answered.has(sourceElement)) {
      answered.set(sourceElement, Date.now());
      show();
    }
  });
  document.addEventListener("htmx:after:swap", localTimes);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    visibleSince = Date.now();
    refresh();
  });
  byId("stale-retry").addEventListener("click", refresh);

  // show prints the age of the oldest region: a page is as live as its
  // slowest part.
  function show() {
    if (document.hidden) return;
    const now = Date.now();
    const oldest = Math.min(...answered.values());
    const silent = now - Math.max(oldest, visibleSince);
    setStale(silent >= staleAfter, now);
    setNotice(silent >= noticeAfter);
    if (noticed) {
      byId("stale-age").textContent = age(now - oldest);
      byId("stale-from").textContent = clock(new Date(oldest));
    }
    const text = byId("live-text");
    if (stale) text.textContent = `Stale, ${age(now - oldest)}`;
    else if (now < backUntil) text.textContent = "Live again";
    else if (now - oldest < staleAfter) text.textContent = `Live, ${age(now - oldest)} ago`;
    else text.textContent = `As of ${clock(new Date(oldest))}`; // just shown again, no answer yet
    const live = !stale && now - oldest < staleAfter;
    byId("live").children[0].toggleAttribute("hidden", live); // the clock
    byId("live").children[1].toggleAttribute("hidden", !live); // the dot
  }

  function setStale(on, now) {
    if (on === stale) return;
    stale = on;
    byId("live").classList.toggle("live--stale", on);
    byId("live-said").textContent = on ? "Stale: no answer from the controller" : "Live again";
    if (!on) backUntil = now + backFor;
  }

  function setNotice(on) {
    if (on === noticed) return;
    noticed = on;
    byId("stale").hidden = !on;
    byId("main").classList.toggle("stale", on);
    document.title = on ? `Stale: ${title}` : title;
  }

  show();
  setInterval(show, tick);
})();
