// What all browser tests share: Debian's Chromium, pages that remember what their
// console and their content security policy said, axe, and screenshots.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// shots is a folder for screenshots; undefined: none are taken.
export const shots = process.env.E2E_SCREENSHOTS;

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}

// open returns a page. What its console says at level error or warning, what a
// script threw, and what a content security policy refused, is in page.problems.
export async function open(browser, url, { scripts = true, scheme = "light", width = 1440, init, context } = {}) {
  context ??= await browser.newContext({
    javaScriptEnabled: scripts, colorScheme: scheme, viewport: { width, height: 900 }, reducedMotion: "reduce",
    hasTouch: width < 768,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000); // a machine may do other things
  page.problems = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") page.problems.push(m.text()); });
  page.on("pageerror", (e) => page.problems.push(String(e)));
  page.on("dialog", (d) => { page.problems.push(`a dialog: ${d.message()}`); void d.dismiss(); });
  if (scripts) {
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`));
    });
  }
  if (init) await page.addInitScript(init);
  await page.goto(url);
  return page;
}

// accessible fails on what axe finds by WCAG 2.2 A and AA and its best practices.
// It is evaluated by the debugger, which no page's policy forbids.
export async function accessible(page, what = page.url()) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await window.axe.run(document)).violations);
  assert.deepEqual(found.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(", ")}`), [], what);
}

// fits fails if the page is wider than its window, or a table than its place.
export async function fits(page, what = page.url()) {
  const [scroll, client] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(scroll <= client, `${what} is ${scroll} px wide in a window of ${client}`);
}

// shoot takes a screenshot of the whole page, if some are wanted.
export async function shoot(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

// quiet fails if the page had problems, but for answers of these statuses, and for
// regions that a machine was too slow for, which ask again.
export function quiet(page, ...statuses) {
  const expected = ["htmx: htmx:error: timeout", ...statuses.map((s) => `status of ${s}`)];
  assert.deepEqual(page.problems.filter((p) => !expected.some((e) => p.includes(e))), [], page.url());
}
