// hands.js keeps what moves by itself from under the hand of who reads or types,
// and helps with forms:
//
// - a region is not swapped while one types in a form in it, or has changed one;
// - the rows of a table with data-keep-order (rows have ids) stay in their order
//   while the pointer or the focus is in it; a line offers to sort;
// - details that one opened or closed, ticks and places stay as they are;
// - an effect box is grey from a key on until its new sentence is there;
// - a form that is being sent says so, and is sent once;
// - a bar with data-bulk counts the ticked boxes of its form: [data-count] in it
//   gets the number, a button with data-say="Promote % to deny" its label; a box
//   with data-all ticks all of its table;
// - after a refusal the focus is at the first field that is wrong.
"use strict";
(() => {
  const typed = 'input:not([type="checkbox"]):not([type="radio"]):not([type="hidden"]):not([type="submit"]), textarea, select';
  const touched = new WeakSet(); // forms with edits, and details that one opened or closed
  const released = new WeakSet(); // tables that may sort once

  document.addEventListener("input", (e) => {
    const form = e.target.form ?? e.target.closest?.("form");
    if (!form) return;
    if (e.target.matches(typed)) touched.add(form);
    form.querySelector(".effect[hx-post], .effect[hx-get]")?.classList.add("effect--waiting");
  });
  document.addEventListener("click", (e) => {
    const details = e.target.closest?.("summary")?.parentElement;
    if (details) touched.add(details);
  });

  // ---- regions
  const updates = (e) => e.matches('[hx-trigger*="every"], [hx-sse\\:connect]');
  const busy = (region) =>
    (region.contains(document.activeElement) && document.activeElement.matches(typed)) ||
    [...region.querySelectorAll("form")].some((f) => touched.has(f));

  if (window.htmx) {
    htmx.registerExtension("hands", {
      htmx_before_swap: (element, detail) => {
        const region = detail.ctx.sourceElement;
        if (!region?.matches || !updates(region)) return true;
        if (busy(region)) return false;
        for (const task of detail.tasks) if (task.fragment) keepOrder(region, task.fragment);
        return true;
      },
      htmx_before_morph_attr: (element, detail) => !(detail.attrName === "open" && touched.has(element)),
    });
    document.addEventListener("htmx:finally:request", (e) => {
      if (e.target.matches?.(".effect")) e.target.classList.remove("effect--waiting");
    });
  }

  // keepOrder puts the rows of an answer into the order in which they are shown,
  // if a hand is in the table, and says how many would move.
  function keepOrder(region, fragment) {
    for (const table of region.querySelectorAll("table[data-keep-order]")) {
      const next = table.id ? fragment.querySelector(`#${CSS.escape(table.id)}`) : fragment.querySelector("table[data-keep-order]");
      const wrap = next?.closest(".table-wrap");
      if (!wrap || released.delete(table) || !(table.matches(":hover") || table.contains(document.activeElement))) continue;
      const moved = reorder(table.tBodies[0], next.tBodies[0]);
      if (moved === 0) continue;
      const line = document.createElement("p");
      line.className = "table__moved";
      line.append(`${moved} ${moved === 1 ? "row" : "rows"} would move: `);
      const sort = document.createElement("button");
      sort.type = "button";
      sort.className = "button button--small";
      sort.textContent = "Sort";
      sort.dataset.sort = table.id;
      line.append(sort);
      wrap.append(line);
    }
  }

  // reorder sorts the rows of next as those of shown are, new ones last, and
  // returns how many stand elsewhere than they would. A row without an id belongs
  // to the one before it.
  function reorder(shown, next) {
    if (!shown || !next) return 0;
    const place = new Map([...shown.rows].filter((r) => r.id).map((r, i) => [r.id, i]));
    const groups = [];
    for (const row of next.rows) {
      if (row.id || groups.length === 0) groups.push([row]);
      else groups[groups.length - 1].push(row);
    }
    const at = (g) => place.get(g[0].id) ?? place.size;
    const sorted = groups.map((g, i) => ({ g, i })).sort((a, b) => at(a.g) - at(b.g) || a.i - b.i);
    const moved = sorted.filter((s, i) => s.i !== i).length;
    if (moved > 0) next.append(...sorted.flatMap((s) => s.g));
    return moved;
  }

  document.addEventListener("click", (e) => {
    const sort = e.target.closest?.("[data-sort]");
    if (!sort) return;
    const table = sort.closest(".table-wrap")?.querySelector("table[data-keep-order]");
    const region = sort.closest("[hx-trigger]");
    if (!table || !region) return;
    released.add(table);
    sort.closest(".table__moved").remove();
    table.closest(".table-wrap").focus?.();
    if (region.hasAttribute("hx-get")) region.dispatchEvent(new Event("refresh"));
  });

  // ---- forms
  const bound = (form, which) => [...document.querySelectorAll(which)].filter((b) => b.form === form);

  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (e.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sent !== undefined) {
      e.preventDefault();
      return;
    }
    form.dataset.sent = "";
    // Later, since a disabled button would not be sent along.
    setTimeout(() => {
      for (const b of bound(form, "button")) {
        if (b.disabled) continue;
        b.disabled = true;
        b.dataset.was = b === e.submitter ? b.textContent : "";
        if (b === e.submitter && b.matches(".button--main, .button--cut")) b.textContent = b.dataset.busy ?? "Saving…";
      }
    });
  });
  // Back from the next page, a form can be sent again.
  window.addEventListener("pageshow", (e) => {
    if (!e.persisted) return;
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const b of bound(form, "button[data-was]")) {
        b.disabled = false;
        if (b.dataset.was) b.textContent = b.dataset.was;
        delete b.dataset.was;
      }
    }
  });

  // ---- ticked rows
  const ticks = (bar) => {
    const form = bar.closest("form") ?? document.getElementById(bar.getAttribute("data-bulk"));
    return form ? bound(form, 'input.tick-box[type="checkbox"]:not([data-all])') : [];
  };
  const count = () => {
    for (const bar of document.querySelectorAll("[data-bulk]")) {
      const n = ticks(bar).filter((t) => t.checked).length;
      for (const c of bar.querySelectorAll("[data-count]")) c.textContent = String(n);
      for (const b of bar.querySelectorAll("button[data-say]")) {
        b.textContent = b.dataset.say.replace("%", String(n));
        if (!b.hasAttribute("data-not-live")) b.disabled = n === 0;
      }
    }
  };
  document.addEventListener("change", (e) => {
    if (!e.target.matches?.("input.tick-box")) return;
    if (e.target.dataset.all !== undefined) {
      for (const t of e.target.closest("table")?.querySelectorAll("input.tick-box:not([data-all])") ?? []) {
        if (!t.disabled) t.checked = e.target.checked;
      }
    }
    count();
  });
  document.addEventListener("htmx:after:swap", count);
  count();

  // ---- after a refusal
  const wrong = document.querySelector('main [aria-invalid="true"]') ?? document.getElementById("problem");
  wrong?.focus();
})();
