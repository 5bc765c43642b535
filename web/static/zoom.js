// zoom.js draws the numbers of one bucket with uPlot, so that one can look into
// a span: drag over it; press twice to see all. The drawing of the server stands
// in its place until the numbers are there, and where they do not come.
//
// Colours are those of the stylesheet: the chart has none of its own.
"use strict";
(() => {
  const box = document.getElementById("zoom");
  const drawn = document.getElementById("zoom-drawn");
  if (!box || !drawn || !window.uPlot) return;

  const height = () => Math.max(280, Math.min(560, Math.round(window.innerHeight * 0.55)));
  const colour = (name) => {
    // A custom property may be light-dark(): only a used colour is plain.
    const probe = document.createElement("i");
    probe.setAttribute("class", "zoom__probe");
    probe.style.color = `var(${name})`;
    box.append(probe);
    const used = getComputedStyle(probe).color;
    probe.remove();
    return used;
  };
  const strokes = {
    offered: "--chart-offered",
    admitted: "--chart-admitted",
    limit: "--chart-limit",
    candidate: "--virtual",
    virtual: "--virtual",
    "drop ratio": "--drop",
  };
  const dashes = { limit: [6, 4], candidate: [2, 4] };
  const steps = uPlot.paths.stepped({ align: 1 });
  const number = (v) => (v == null ? "–" : v >= 100 ? Math.round(v).toLocaleString("en") : v.toPrecision(3));

  const two = (n) => String(n).padStart(2, "0");
  // when prints times as all pages do: 21:40, and 14 Feb where a day begins.
  const when = (_, all) =>
    all.map((t) => {
      const d = new Date(t * 1000);
      const midnight = d.getHours() === 0 && d.getMinutes() === 0;
      return midnight ? `${d.getDate()} ${d.toLocaleDateString("en", { month: "short" })}` : `${two(d.getHours())}:${two(d.getMinutes())}`;
    });

  const build = (data) => {
    const lines = data.lines.filter((l) => l.unit === "rps");
    const axis = {
      stroke: colour("--ink-3"),
      font: "11px system-ui, sans-serif",
      grid: { stroke: colour("--chart-grid"), width: 1 },
      ticks: { stroke: colour("--line-strong"), width: 1, size: 4 },
    };
    const options = {
      width: box.clientWidth,
      height: height(),
      cursor: { drag: { x: true, y: false } },
      scales: { y: { range: (_, low, high) => [0, Math.max(1e-3, (high ?? 1) * 1.04)] } },
      axes: [{ ...axis, values: when }, { ...axis, values: (_, all) => all.map(number), size: 64, label: "rps", labelSize: 18 }],
      series: [
        { value: (_, t) => (t == null ? "–" : new Date(t * 1000).toLocaleString("en-GB")) },
        ...lines.map((l) => ({
          label: l.name,
          stroke: colour(strokes[l.name] ?? "--ink"),
          width: 1.5,
          dash: dashes[l.name],
          paths: dashes[l.name] ? steps : undefined,
          points: { show: false },
          value: (_, v) => number(v),
        })),
      ],
    };
    return new uPlot(options, [data.times, ...lines.map((l) => l.values)], box);
  };

  fetch(box.dataset.series, { headers: { Accept: "application/json" } })
    .then((r) => (r.ok ? r.json() : Promise.reject(new Error(r.statusText))))
    .then((data) => {
      box.hidden = false;
      const chart = build(data);
      document.getElementById("zoom-hint").hidden = false;
      drawn.hidden = true;
      addEventListener("resize", () => chart.setSize({ width: box.clientWidth, height: height() }));
    })
    .catch(() => {
      box.hidden = true; // what the server drew stays
      drawn.hidden = false;
    });
})();
