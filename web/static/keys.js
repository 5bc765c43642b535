// keys.js has the shortcuts that the table under "Keyboard" lists. They are off
// while one types, with a modifier held, and where a person turned them off. A
// page marks what its keys lead to: a link or field with data-key="n" (place a
// cap for what is shown) or data-key="e" (change it), and the links of its range
// with data-key="range" around them. It is loaded before the page is whole, and keeps
// what is pressed until then.
"use strict";
(() => {
  if (document.documentElement.dataset.keys === "off") return;

  const pages = { o: "/", b: "/buckets", s: "/shadow", e: "/explain", c: "/caps", p: "/policies", r: "/rlc", f: "/fleet", a: "/alerts", h: "/changes" };
  const goFor = 1500; // ms in which the second key must follow "g"
  const rowsOf = "main tbody tr:has(a, input, summary, button), main .verdict, main .cap, main .list__row:has(a)";
  const inRow = 'a, summary, button, input:not([type="hidden"])';
  let went = 0;

  const typing = (e) => e.isContentEditable || e.matches('textarea, select, input:not([type="checkbox"]):not([type="radio"])');
  const help = () => document.getElementById("keys");

  // move goes to the next row, or the one before: to the first thing in it that
  // can have the focus.
  function move(by) {
    const rows = [...document.querySelectorAll(rowsOf)].filter((r) => r.checkVisibility());
    if (rows.length === 0) return;
    const here = rows.findIndex((r) => r.contains(document.activeElement));
    const next = rows[Math.min(rows.length - 1, Math.max(0, here + (here < 0 ? 1 : by)))];
    (next.querySelector("a") ?? next.querySelector(inRow))?.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function reach(name) {
    const e = document.querySelector(`main [data-key="${name}"]`);
    if (!e) return;
    const details = e.closest("details:not([open])");
    if (details) details.open = true;
    if (e.matches("a")) e.click();
    else e.focus();
  }

  function range(by) {
    const links = [...document.querySelectorAll('main [data-key="range"] a')];
    const here = links.findIndex((l) => l.hasAttribute("aria-current"));
    if (here >= 0) links[here + by]?.click();
  }

  function leave() {
    const details = document.activeElement.closest?.("details[open]") ?? document.querySelector(".menu[open], .keys[open]");
    if (typing(document.activeElement)) document.activeElement.blur();
    else if (details) {
      details.open = false;
      details.querySelector("summary").focus();
    }
  }

  const acts = {
    "/": () => (document.querySelector('main input[type="search"]') ?? document.getElementById("jump"))?.focus(),
    j: () => move(1),
    k: () => move(-1),
    x: () => document.activeElement.closest?.(rowsOf)?.querySelector('input[type="checkbox"]')?.click(),
    n: () => reach("n"),
    e: () => reach("e"),
    "[": () => range(-1),
    "]": () => range(1),
    "?": () => {
      if (help()) help().open = !help().open;
    },
  };

  // press does what a key means.
  function press(key) {
    const going = Date.now() - went < goFor;
    went = key === "g" && !going ? Date.now() : 0;
    if (going && pages[key]) location.assign(pages[key]);
    else if (!going) acts[key]?.();
  }

  // Keys that come before the page is whole wait for it; null: it is.
  let early = document.readyState === "loading" ? [] : null;
  document.addEventListener("DOMContentLoaded", () => {
    const keys = early ?? [];
    early = null;
    keys.forEach(press);
  });

  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    if (e.key === "Escape") return leave();
    if (typing(e.target)) return;
    if (acts[e.key] || pages[e.key]) e.preventDefault();
    if (early) early.push(e.key);
    else press(e.key);
  });
})();
