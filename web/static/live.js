// live.js says how old the numbers of a page are, and never lets them look
// live when they are not. The server prints "As of 21:40:02"; this turns it
// into "Live, 0.4 s ago", into "Stale, 7 s" after 6 s without an answer, and
// after 10 s into a notice, with what acts disabled. It also stops the updates
// of a hidden tab, prints times in the viewer's zone, and counts down.
//
// A region is what polls (hx-trigger has "every") or has a stream
// (hx-sse:connect). An element with data-title in it is the title of the window.
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
    const ago = Math.abs(Date.now() - d.getTime());
    const hours = `${two(d.getHours())}:${two(d.getMinutes())}`;
    if (ago < 86400e3) return hours;
    if (ago < 7 * 86400e3) return `${d.toLocaleDateString("en", { weekday: "short" })} ${hours}`;
    return `${d.getDate()} ${d.toLocaleDateString("en", { month: "short" })}`;
  };

  const loaded = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.responseStart ?? 0);

  // fast is by how much this clock is ahead of the server's, in ms; the page
  // says only whole seconds.
  const fast = (() => {
    const asOf = document.querySelector("#live time")?.dateTime;
    const by = asOf ? loaded - Date.parse(asOf) : 0;
    return Math.abs(by) > 2000 ? by : 0;
  })();

  // left prints what still runs: 8:52, 2:14:07.
  const left = (d) => {
    const s = Math.ceil(Math.max(0, d.getTime() - (Date.now() - fast)) / 1000);
    const minutes = `${Math.floor((s % 3600) / 60)}`;
    return s < 3600 ? `${minutes}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(minutes)}:${two(s % 60)}`;
  };

  const forms = { clock, stamp, left };
  const printTimes = (which) => {
    for (const t of document.querySelectorAll(which)) {
      const text = forms[t.dataset.form]?.(new Date(t.dateTime));
      if (text && t.textContent !== text) t.textContent = text;
    }
  };
  const localTimes = () => printTimes("time[data-form]");
  localTimes();
  setInterval(() => printTimes('time[data-form="left"]'), 1000);

  const isRegion = (e) => e.matches('[hx-get][hx-trigger*="every"], [hx-sse\\:connect]');
  const regions = [...document.querySelectorAll("[hx-get], [hx-sse\\:connect]")].filter(isRegion);
  if (!window.htmx || regions.length === 0 || !byId("live")) return;

  // htmx goes over the page a moment after its file has run, which may be before
  // the file of its streams has: those that it passed over are taken up here. The
  // timer comes after that of htmx.
  addEventListener("load", () => setTimeout(() => {
    for (const r of regions) if (r.matches("[hx-sse\\:connect]") && !r._htmx) window.htmx.process(r);
  }));

  const written = document.title;
  const suffix = " · grl";
  const answered = new Map(regions.map((r) => [r, loaded])); // region → when it last got an answer, in ms
  let visibleSince = 0; // when the tab was last shown again; silence before that is our own
  let stale = false;
  let noticed = false;
  let backUntil = 0;

  const refresh = () => regions.forEach((r) => r.dispatchEvent(new Event("refresh")));

  const heard = (region) => {
    if (!answered.has(region)) return;
    answered.set(region, Date.now());
    show();
  };

  document.addEventListener("htmx:before:request", (e) => {
    if (document.hidden && answered.has(e.detail.ctx?.sourceElement ?? e.target)) e.preventDefault();
  });
  document.addEventListener("htmx:after:request", (e) => {
    const { sourceElement, response } = e.detail.ctx;
    if (response.status === 200) heard(sourceElement);
  });
  // A stream says at least "alive" every time the server looks.
  document.addEventListener("htmx:sse:after:connection", (e) => heard(e.target));
  document.addEventListener("htmx:sse:before:message", (e) => heard(e.target));
  document.addEventListener("htmx:after:swap", () => {
    localTimes();
    setTitle();
  });
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
    setActs(!on);
    setTitle();
  }

  // setActs disables what would change something while nobody answers.
  function setActs(may) {
    const which = may ? "[data-not-live]" : 'form[method="post"] button:not([disabled]), form[method="post"] input[type="submit"]:not([disabled])';
    for (const b of byId("main").querySelectorAll(which)) {
      b.disabled = !may;
      b.toggleAttribute("data-not-live", !may);
      if (may) b.removeAttribute("title");
      else b.title = "Not live: no answer from the controller";
    }
  }

  // setTitle makes the title of the window say the state, as the last answer
  // has it.
  function setTitle() {
    const now = byId("main").querySelector("[data-title]")?.dataset.title;
    const text = now ? now + suffix : written;
    document.title = noticed ? `Stale: ${text}` : text;
  }

  show();
  setTitle();
  setInterval(show, tick);
})();
