// Every page of the dashboard of a real fleet, in Debian's Chromium: accessible,
// quiet, as wide as its window, complete without scripts.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { agreed, apply, computed, nightly } from "./rlc.mjs";

const views = [
  { width: 1440, scheme: "light" }, { width: 1440, scheme: "dark" },
  { width: 375, scheme: "light" }, { width: 375, scheme: "dark" },
  { width: 2560, scheme: "light" },
];

// pages are all there are, by the name of their drawing; of those that show one
// thing, an example is looked up when the fleet runs.
const pages = {
  overview: "/",
  buckets: "/buckets",
  "buckets-none": "/buckets?q=no-such-bucket",
  bucket: "/bucket?name=payments/checkout-charge",
  "bucket-shadow": "/bucket?name=payments/each-caller",
  "bucket-new": "/bucket/new?service=payments&caller=price-bot&rps=40",
  "bucket-zoom": "/bucket/zoom?name=payments/checkout-charge",
  shadow: "/shadow",
  explain: "/explain?service=payments&caller=checkout&procedure=POST+/charges",
  "explain-empty": "/explain",
  caps: "/caps?service=payments&caller=price-bot",
  policies: "/policies",
  policy: "/policies/show?name=nightly",
  rlc: "/rlc",
  "rlc-run": "/rlc/run?id=1",
  fleet: "/fleet",
  alerts: "/alerts",
  changes: "/changes",
  "not-found": "/nothing-here",
};

let fleet, browser;

before(async () => {
  fleet = await Fleet.start();
  browser = await launch();
  assert.equal(await computed(fleet, await apply(fleet, nightly, agreed(24))), 1);
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

for (const [name, path] of Object.entries(pages)) {
  for (const { width, scheme } of views) {
    test(`${name} at ${width} px, ${scheme}`, { timeout: 60_000 }, async () => {
      const page = await open(browser, fleet.url + path, { width, scheme });
      try {
        await fits(page);
        if (await page.locator("[hx-get]").count() > 0 && width === 1440) {
          await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
          await page.waitForResponse((r) => r.status() === 200 && r.request().headers()["hx-request"] === "true", { timeout: 10_000 });
          await fits(page, `${path} after an update`);
        }
        await shoot(page, `${name}-${width}-${scheme}`);
        await accessible(page);
        quiet(page, ...name === "not-found" ? [404] : []);
      } finally {
        await page.context().close();
      }
    });
  }
  test(`${name} without scripts`, { timeout: 60_000 }, async () => {
    const page = await open(browser, fleet.url + path, { scripts: false });
    try {
      assert.ok((await page.locator("h1").innerText()).length > 0);
      await fits(page);
      const live = page.locator("#live");
      if (await live.count() > 0) assert.match(await live.innerText(), /As of \d\d:\d\d:\d\d UTC/);
    } finally {
      await page.context().close();
    }
  });
}

test("updates in place and keeps focus, typed text, open details and scroll position", { timeout: 60_000 }, async () => {
  const page = await open(browser, fleet.url + "/buckets", { width: 375 });
  await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
  const search = page.getByRole("searchbox", { name: "Search" });
  await search.fill("half typ");
  await page.evaluate(() => { window.mark = "same page"; scrollTo(0, 120); });
  const top = await page.evaluate(() => scrollY);
  for (let i = 0; i < 2; i++) await page.waitForResponse((r) => r.request().headers()["hx-request"] === "true");
  assert.equal(await search.inputValue(), "half typ");
  assert.deepEqual(await page.evaluate(() => [window.mark, scrollY]), ["same page", top]);
  quiet(page);
  await page.context().close();
});

test("a hidden tab does not poll, and catches up when shown", { timeout: 60_000 }, async () => {
  const page = await open(browser, fleet.url + "/buckets", {
    init: () => {
      window.pretendHidden = false;
      Object.defineProperty(document, "hidden", { get: () => window.pretendHidden });
    },
  });
  await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
  await page.evaluate(() => { window.pretendHidden = true; });
  await sleep(500); // what is on its way
  let polls = 0;
  page.on("request", () => polls++);
  await sleep(5000); // more than two polls
  assert.equal(polls, 0, "polled while hidden");
  const answer = page.waitForResponse((r) => r.request().headers()["hx-request"] === "true");
  await page.evaluate(() => {
    window.pretendHidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await answer;
  await page.context().close();
});

test("a lost controller is said, nothing looks live, and all is live again", { timeout: 240_000 }, async (t) => {
  const lost = await Promise.all(["/bucket?name=payments/checkout-charge", "/", "/caps"].map((path) => open(browser, fleet.url + path)));
  for (const page of lost) await page.locator("#live-text", { hasText: /^Live, / }).waitFor();
  t.after(() => fleet.up("controller"));
  await fleet.down("controller");
  for (const page of lost) {
    await page.locator(".live--stale", { hasText: /^\s*Stale, \d+(\.\d)? s$/ }).waitFor({ timeout: 15_000 });
    await page.locator("#stale").waitFor({ timeout: 15_000 });
    assert.match(await page.locator("#stale .notice__title").innerText(), /^Not live: no answer from the controller for \d+ s$/);
    assert.match(await page.title(), /^Stale: /);
    assert.equal(await page.locator("main.stale").count(), 1);
    for (const button of await page.locator("main form[method=post] button[type=submit]").all()) {
      assert.ok(await button.isDisabled(), `an action of ${page.url()} can be tried while nobody answers`);
    }
    await accessible(page);
  }
  await shoot(lost[0], "stale-1440-light");
  fleet.up("controller");
  for (const page of lost) {
    await page.locator("#live-text", { hasText: /^(Live again|Live, .* ago)$/ }).waitFor({ timeout: 30_000 });
    await page.locator("#stale").waitFor({ state: "hidden" });
    assert.doesNotMatch(await page.title(), /^Stale: /);
  }
  await fleet.ready();
  for (const page of lost) await page.context().close();
});
