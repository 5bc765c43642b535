// Browser tests of accounts: signing in and out, roles, sessions and tokens, in
// Debian's Chromium against the real binary.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";

const password = "correct horse battery staple";

let fleet, browser;

before(async () => {
  fleet = await Fleet.start({ sidecars: false });
  browser = await launch();
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

// check runs axe and looks for what spills over the page's width.
async function check(page, name, scripts) {
  if (!scripts) return; // axe is one
  await accessible(page, name);
  await fits(page, name);
  await shoot(page, name);
}

// signOut finds the button on a narrow screen too, where it is in the menu.
async function signOut(page) {
  const menu = page.getByLabel("Menu");
  if (await menu.isVisible()) await menu.click();
  await page.getByRole("button", { name: "Sign out" }).click();
}

const views = [
  { width: 1440, colorScheme: "light", scripts: true },
  { width: 1440, colorScheme: "dark", scripts: true },
  { width: 375, colorScheme: "light", scripts: true },
  { width: 375, colorScheme: "dark", scripts: true },
  { width: 1440, colorScheme: "light", scripts: false },
];

// The tests are one story: the first one makes the account.
for (const { width, colorScheme, scripts } of views) {
  test(`signs in and out, ${width} px, ${colorScheme}, ${scripts ? "with" : "without"} scripts`, { timeout: 60_000 }, async () => {
    const context = await browser.newContext({ javaScriptEnabled: scripts, colorScheme, viewport: { width, height: 900 } });
    const page = await context.newPage();
    const problems = [];
    page.on("console", (m) => { if (m.type() === "error") problems.push(m.text()); });
    const name = (what) => `${what}-${width}-${colorScheme}`;
    try {
      await page.goto(fleet.url + "/fleet");
      if (new URL(page.url()).pathname === "/fleet") { // no account yet: open to everyone here
        await check(page, name("open"), scripts);
        await page.getByRole("link", { name: "Make the first account" }).click();
        await check(page, name("first"), scripts);
        await page.getByRole("textbox", { name: "Account" }).fill("root");
        await page.getByLabel("Password", { exact: true }).fill(password);
        await page.getByLabel("Password again").fill("another password");
        await page.getByRole("button").click();
        assert.match(await page.getByRole("alert").innerText(), /two passwords differ/);
        await check(page, name("first-refused"), scripts);
        await page.getByLabel("Password", { exact: true }).fill(password);
        await page.getByLabel("Password again").fill(password);
        await page.getByRole("button").click();
        assert.equal(new URL(page.url()).pathname, "/");
        await signOut(page);
        await page.goto(fleet.url + "/fleet");
      }
      assert.equal(new URL(page.url()).pathname, "/login");
      await check(page, name("login"), scripts);
      // Another account each time: five wrong passwords a minute close one.
      await page.getByRole("textbox", { name: "Account" }).fill(name("guest"));
      await page.getByLabel("Password", { exact: true }).fill("a wrong password");
      await page.getByRole("button").click();
      assert.match(await page.getByRole("alert").innerText(), /Account or password is wrong/);
      assert.equal(await page.getByLabel("Password", { exact: true }).inputValue(), "");
      await check(page, name("login-refused"), scripts);
      await page.getByRole("textbox", { name: "Account" }).fill("root");
      await page.getByLabel("Password", { exact: true }).fill(password);
      await page.getByRole("button").click();
      assert.equal(new URL(page.url()).pathname, "/fleet");

      const [session] = await context.cookies();
      assert.deepEqual([session.name, session.httpOnly, session.sameSite], ["grl", true, "Lax"]);

      await page.goto(fleet.url + "/account");
      await page.getByLabel("What it is for").fill("a pipeline");
      await page.getByRole("button", { name: "Make a token" }).click();
      assert.match(await page.locator("#secret").innerText(), /^grl_[0-9a-f]{16}_[0-9a-f]{64}$/);
      await check(page, name("account"), scripts);
      await page.getByRole("button", { name: "Revoke a pipeline" }).click();
      assert.match(await page.getByLabel("Table of tokens").innerText(), /No token yet/);

      await signOut(page);
      assert.equal(new URL(page.url()).pathname, "/login");
      // Going back before the page is there finds a browser between two pages.
      await page.waitForLoadState("load");
      await page.getByLabel("Password", { exact: true }).waitFor();
      await page.goBack();
      await page.reload();
      assert.equal(new URL(page.url()).pathname, "/login");
      assert.deepEqual(problems.filter((p) => !p.includes("403") && !p.includes("422")), []);
    } finally {
      await context.close();
    }
  });
}

// With scripts a page that was open when the session ended leads to where one
// signs in.
test("a page that polls leads to the login when its session has ended", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(fleet.url + "/login?next=/buckets");
  await page.getByRole("textbox", { name: "Account" }).fill("root");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/buckets/);
  await page.locator("#live-text", { hasText: /^Live/ }).waitFor();
  await context.clearCookies();
  await page.waitForURL(/\/login/, { timeout: 10_000 });
  await context.close();
});
