// Browser tests of the dashboard, in Debian's Chromium against a real server.
import { after, afterEach, before, test } from "node:test";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Server } from "./server.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const widths = [1440, 375];
const schemes = ["light", "dark"];
const paths = ["/", "/buckets", "/fleet", "/buckets?q=no-such-bucket", "/nothing-here"];
const shots = process.env.E2E_SCREENSHOTS; // a folder; empty: take none

let server, browser;

before(async () => {
  server = await Server.start();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
});
after(async () => {
  await browser?.close();
  await server?.close();
});

let context;
afterEach(async () => {
  await context?.close();
  context = undefined;
});

// open returns a page at path, with what its console says at level error, and
// what a content security policy refused, in page.problems.
async function open(path, { javaScriptEnabled = true, colorScheme = "light", width = 1440, init } = {}) {
  context = await browser.newContext({
    javaScriptEnabled, colorScheme, viewport: { width, height: 900 }, reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") page.problems.push(m.text()); });
  page.on("pageerror", (e) => page.problems.push(String(e)));
  if (init) await page.addInitScript(init);
  await page.goto(server.url + path);
  return page;
}

// polled waits until region got n answers from now on.
async function polled(page, region, n) {
  for (let i = 0; i < n; i++) {
    await page.waitForResponse(async (r) => {
      const h = await r.request().allHeaders();
      return r.status() === 200 && h["hx-source"] === `div#${region}`;
    });
  }
}

test("is complete without JavaScript", async () => {
  const page = await open("/", { javaScriptEnabled: false });
  assert.match(await page.locator("#live").innerText(), /^As of \d\d:\d\d:\d\d UTC$/);
  assert.equal(await page.locator("#stale").isVisible(), false);
  assert.equal(await page.locator("h1").innerText(), "Overview");
  assert.ok(await page.locator("#summary .stat").count() >= 5);
  assert.ok(await page.locator("#fleet tbody tr").count() >= 1);
  await page.getByRole("search", { name: "Buckets" }).getByLabel("Search").fill("no-such-bucket");
  await page.getByRole("button", { name: "Apply" }).click();
  assert.equal(new URL(page.url()).pathname, "/buckets");
  assert.equal(new URL(page.url()).searchParams.get("q"), "no-such-bucket");
  assert.equal(await page.getByLabel("Search", { exact: true }).inputValue(), "no-such-bucket");
});

test("updates in place and keeps focus, typed text and scroll position", async () => {
  const page = await open("/buckets", { width: 375 });
  await page.locator("#live-text", { hasText: /^Live, \d\.\d s ago$/ }).waitFor();
  const search = page.getByLabel("Search", { exact: true });
  await search.fill("half typ");
  const before = await page.locator("#summary").innerText();
  await page.evaluate(() => {
    document.querySelector("#summary .stats").mark = "same element";
    window.mark = "same page";
    scrollTo(0, 120);
  });
  const top = await page.evaluate(() => scrollY);
  await polled(page, "buckets", 2);
  await polled(page, "summary", 1);
  assert.equal(await search.inputValue(), "half typ");
  assert.ok(await search.evaluate((e) => e === document.activeElement), "search lost its focus");
  assert.deepEqual(await page.evaluate(() => [document.querySelector("#summary .stats").mark, window.mark, scrollY]),
    ["same element", "same page", top]);
  if (server.generated) {
    await page.waitForFunction((b) => document.querySelector("#summary").innerText !== b, before);
  }
  assert.deepEqual(page.problems, []);
});

test("what has the focus inside a region keeps it", async () => {
  const page = await open("/fleet");
  const table = page.getByRole("region", { name: "Table of nodes" });
  await table.focus();
  await polled(page, "fleet", 2);
  assert.ok(await table.evaluate((e) => e === document.activeElement), "the table lost its focus");
});

test("a hidden tab does not poll, and catches up when shown", async () => {
  const page = await open("/", {
    init: () => {
      window.pretendHidden = false;
      Object.defineProperty(document, "hidden", { get: () => window.pretendHidden });
    },
  });
  await polled(page, "buckets", 1);
  await page.evaluate(() => { window.pretendHidden = true; });
  let polls = 0;
  page.on("request", () => polls++);
  await page.waitForTimeout(5000); // more than two polls
  assert.equal(polls, 0, "polled while hidden");
  const answer = polled(page, "buckets", 1);
  const shown = Date.now();
  await page.evaluate(() => {
    window.pretendHidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await answer;
  assert.ok(Date.now() - shown < 1500, "did not catch up at once");
  await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
});

for (const width of widths) {
  for (const colorScheme of schemes) {
    for (const path of paths) {
      test(`${path} at ${width} px, ${colorScheme}: accessible, no sideways scroll, policy kept`, async () => {
        const page = await open(path, { width, colorScheme });
        if (path !== "/nothing-here" && colorScheme === "light") await polled(page, "summary", 1); // as after a swap
        const [scroll, client] = await page.evaluate(() => {
          const e = document.documentElement;
          return [e.scrollWidth, e.clientWidth];
        });
        assert.ok(scroll <= client, `page is ${scroll} px wide in a window of ${client}`);
        if (server.generated && width === 1440) {
          const heights = await page.locator("#buckets tbody tr").evaluateAll((rows) => rows.map((r) => r.offsetHeight));
          assert.ok(heights.every((h) => h < 64), `rows of ${heights} px: a name broke one`);
          for (const wrap of await page.locator(".table-wrap").all()) {
            const cut = await wrap.evaluate((e) => e.scrollWidth - e.clientWidth);
            assert.ok(cut <= 0, `a table is ${cut} px too wide: a name sets its width`);
          }
        }
        if (shots) {
          mkdirSync(shots, { recursive: true });
          const name = path === "/" ? "overview" : path.slice(1).replace(/\W+/g, "-");
          await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        }
        assert.deepEqual(await violations(page), []);
        const expected = path === "/nothing-here" ? /404/ : /(?!)/; // the page itself is one
        assert.deepEqual(page.problems.filter((p) => !expected.test(p)), []);
      });
    }
  }
}

test("says that it is stale after the server is gone, and when it is back", async (t) => {
  const page = await open("/");
  await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
  await polled(page, "summary", 1);
  t.after(() => server.up());
  await server.down();
  const gone = Date.now();
  await page.locator(".live--stale", { hasText: /^\s*Stale, \d+(\.\d)? s$/ }).waitFor({ timeout: 12_000 });
  const stale = Date.now() - gone;
  assert.ok(stale > 3500 && stale < 8500, `stale after ${stale} ms, want about 6000 since the last answer`);
  assert.equal(await page.locator("#stale").isVisible(), false);
  await page.locator("#stale").waitFor({ timeout: 12_000 });
  assert.match(await page.locator("#stale .notice__title").innerText(), /^Not live: no answer from the controller for \d+ s$/);
  assert.match(await page.locator("#stale").innerText(), /Numbers are from \d\d:\d\d:\d\d\./);
  assert.match(await page.title(), /^Stale: Overview · grl$/);
  assert.ok(await page.locator("main.stale").count() === 1);
  if (shots) await page.screenshot({ path: join(shots, "stale-1440-light.png"), fullPage: true });
  assert.deepEqual(await violations(page), []);

  await server.up();
  await page.getByRole("button", { name: "Try now" }).click();
  await page.locator("#live-text", { hasText: /^(Live again|Live, .* ago)$/ }).waitFor({ timeout: 12_000 });
  assert.equal(await page.locator("#live-said").textContent(), "Live again");
  assert.equal(await page.locator("#stale").isVisible(), false);
  assert.equal(await page.title(), "Overview · grl");
});

// violations runs axe with the rules of WCAG 2.2 A and AA and its best
// practices. It is evaluated by the debugger, which no page's policy forbids.
async function violations(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await window.axe.run(document)).violations);
  return found.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(", ")}`);
}
