// Browser tests of an edit of one bucket: what it would do, said first; saved, and
// in force at the sidecars; stale, refused and wrong ones; against a real fleet.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { address, admitted, call, dropped, head, post, text } from "./limits.mjs";

const checkout = { caller: "checkout", method: "POST", path: "/charges" };
const timeout = 180_000;
let fleet, browser;

before(async () => {
  fleet = await Fleet.start({ buckets: 60, history: 5 });
  browser = await launch();
}, { timeout: 500_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

// field is one of the form that changes the bucket.
const field = (page, label) => page.locator("#edit").getByLabel(label, { exact: true });
const save = (page) => page.locator("#edit .form__actions .button").first();

// saved waits for the proof that the page gives of a change.
async function saved(page, revision) {
  const proof = page.locator("#saved");
  await proof.getByText(`Saved as r${revision} and active`).waitFor();
  await proof.getByText("2 of 2 hosts confirmed it.").waitFor();
}

test("an edit says what it would do, is proven, and is sent once", { timeout }, async () => {
  const bucket = "payments/checkout-charge";
  await dropped(fleet, "eu-1", checkout);
  const page = await open(browser, address(fleet, bucket));
  const r = await head(fleet) + 1;
  const effect = page.locator("#effect");
  await effect.getByText(/^As it is, drops \d/).waitFor();
  await field(page, "Limit").fill("60");
  await effect.getByText(/^Would drop /).waitFor(); // while one types
  await field(page, "Reason").fill("checkout grew");
  await page.getByRole("button", { name: "Preview" }).click();
  const diff = page.locator("#edit .diff");
  await diff.waitFor();
  assert.match(await diff.innerText(), /- limit: \{rps: 20\}\n\+ limit: \{rps: 60\}/);
  assert.equal(await field(page, "Reason").inputValue(), "checkout grew");
  assert.equal(await head(fleet), r - 1, "a preview made a revision");
  quiet(page);
  await accessible(page, "the preview");
  page.problems.length = 0; // axe sets styles
  await shoot(page, "edit-preview");

  await save(page).click();
  await page.waitForURL(/saved=/);
  await saved(page, r);
  assert.equal(await field(page, "Limit").inputValue(), "60");
  const mark = page.locator(".mark", { hasText: `r${r} ` });
  await mark.getByText("limit 20.0 → 60.0").waitFor();
  assert.match(await page.locator("section:has(#history-title)").innerText(), new RegExp(`r${r} limit 20 → 60 rps by`));
  quiet(page);
  await accessible(page, "the proof");
  await shoot(page, "edit-saved");

  // What was sent is not sent again, by no way of going on from there.
  await page.reload();
  await saved(page, r);
  await page.goBack(); // to the preview, which is asked for anew
  assert.equal(await field(page, "Limit").inputValue(), "60");
  await page.goForward();
  await saved(page, r);
  assert.equal(await head(fleet), r, "it was sent again");
  await page.getByRole("link", { name: "What it changed" }).click();
  await page.getByText("checkout grew").first().waitFor();
  await page.context().close();

  await Promise.all(["eu-1", "us-1"].map((zone) => admitted(fleet, zone, checkout)));
  const { buckets } = await call(fleet, "ViewService/ListBuckets");
  assert.deepEqual(buckets.filter((b) => b.bucket === bucket).map((b) => b.limitRps), [60]);

  // And back, from the proof: it drops again.
  const again = await open(browser, `${address(fleet, bucket)}&saved=${r}`, { width: 375 });
  await again.getByRole("button", { name: "Roll back" }).click();
  await saved(again, r + 1);
  await fits(again);
  quiet(again);
  await again.context().close();
  assert.match(await text(fleet, bucket), /limit: \{rps: 20\}/);
  await dropped(fleet, "eu-1", checkout);
});

test("an edit on a phone without scripts", { timeout }, async () => {
  const bucket = "service-0/bucket-4";
  const page = await open(browser, address(fleet, bucket), { scripts: false, width: 375 });
  const r = await head(fleet) + 1;
  const limit = Number((await field(page, "Limit").inputValue()).replaceAll(",", ""));
  await field(page, "Limit").fill(String(limit + 10));
  await page.getByRole("button", { name: "Preview" }).click();
  assert.match(await page.locator("#effect").innerText(), /^Would drop nothing now, and nothing of the last 7 days\./);
  assert.ok((await page.locator("#edit .diff").innerText()).includes(`+ limit: {rps: ${limit + 10}}`));
  await fits(page);
  await save(page).click();
  assert.match(await page.locator("#saved").innerText(), new RegExp(`^Saved as r${r} and active`));
  await fits(page);
  await page.context().close();
  assert.ok((await text(fleet, bucket)).includes(`limit: {rps: ${limit + 10}}`));
});

for (const scripts of [true, false]) {
  test(`a stale edit overwrites nothing and shows both, ${scripts ? "with" : "without"} scripts`, { timeout }, async () => {
    const bucket = "service-0/bucket-1";
    const [mine, theirs] = await Promise.all([
      open(browser, address(fleet, bucket), { scripts }), open(browser, address(fleet, bucket), { scripts, width: 375 }),
    ]);
    const r = await head(fleet) + 1;
    const limit = Number((await field(mine, "Limit").inputValue()).replaceAll(",", ""));
    await field(theirs, "Limit").fill(String(limit + 1));
    await save(theirs).click();
    await theirs.locator("#saved").getByText(`Saved as r${r} and active`).waitFor();

    await field(mine, "Limit").fill(String(limit + 2));
    await field(mine, "Reason").fill("typed for long");
    await save(mine).click();
    await mine.getByText(`Not saved: r${r} changed this bucket while you were editing`).waitFor();
    assert.match(await mine.locator("section:has(#theirs)").innerText(), new RegExp(`Limit\\s+${limit} rps\\s+(→\\s+)?${limit + 1} rps`));
    assert.match(await mine.locator("section:has(#yours)").innerText(), new RegExp(`Limit\\s+${limit} rps\\s+(→\\s+)?${limit + 2} rps`));
    assert.ok((await text(fleet, bucket)).includes(`{rps: ${limit + 1}}`), "it was overwritten");
    assert.equal(await head(fleet), r);
    await fits(mine);
    if (scripts) {
      quiet(mine, 409);
      await accessible(mine, "both versions");
      await shoot(mine, "edit-stale");
    }
    await mine.getByRole("button", { name: `Edit mine on top of r${r}` }).click();
    await field(mine, "Limit").waitFor();
    assert.deepEqual([await field(mine, "Limit").inputValue(), await field(mine, "Reason").inputValue()], [String(limit + 2), "typed for long"]);
    assert.match(await mine.locator("#edit .diff").innerText(), new RegExp(`- limit: \\{rps: ${limit + 1}\\}`));
    await save(mine).click();
    await mine.locator("#saved").getByText(`Saved as r${r + 1} and active`).waitFor();
    assert.ok((await text(fleet, bucket)).includes(`{rps: ${limit + 2}}`));
    await mine.context().close();
    await theirs.context().close();
  });
}

// A change by force goes out zone by zone, a minute each, and no other is taken
// meanwhile.
async function finish(fleet) {
  await call(fleet, "ConfigService/FinishRollout", { reason: "the test goes on" });
}

test("a guard rail holds until an admin passes it, with a reason", { timeout }, async () => {
  const bucket = "payments/everything";
  const page = await open(browser, address(fleet, bucket));
  const r = await head(fleet) + 1;
  await field(page, "Limit").fill("100000");
  await page.locator("#effect .field__error").getByText(/above 3 times the present one/).waitFor(); // while one types
  await save(page).click();
  await page.getByText("Not saved: a guard rail is in the way").waitFor();
  assert.equal(await field(page, "Limit").inputValue(), "100000");
  quiet(page, 422);
  await accessible(page, "a guard rail");
  await shoot(page, "edit-rail");
  const yes = page.getByRole("checkbox", { name: /^Yes, / });
  await yes.check();
  await save(page).click(); // the browser asks for a reason
  assert.equal(await field(page, "Reason").evaluate((e) => e.validity.valueMissing), true);
  const form = { name: bucket, base: String(r - 1), limit: "100000", behavior: "deny" };
  assert.equal((await post(fleet, "/bucket", { ...form, reason: "no tick" })).status, 422);
  const bare = await post(fleet, "/bucket", { ...form, force: "yes", reason: "" });
  assert.equal(bare.status, 422);
  assert.ok((await bare.text()).includes('id="reason-error"'), "nothing is said at the reason");
  assert.equal(await head(fleet), r - 1);
  assert.match(await text(fleet, bucket), /\{rps: 5000\}/);

  await field(page, "Reason").fill("a sale begins");
  await page.getByRole("button", { name: "Force 100,000 rps" }).click();
  await page.locator("#saved").getByText(`Saved as r${r} and active`).waitFor();
  await page.locator("#saved").getByText(/It goes out zone by zone: reached /).waitFor();
  assert.match(await text(fleet, bucket), /\{rps: 100000\}/);
  await finish(fleet);
  await saved(page, r);
  quiet(page, 422);
  await page.goto(`${fleet.url}/changes?revision=${r}`);
  assert.match(await page.locator("main").innerText(), /Forced[\s\S]*a sale begins/);
  await page.context().close();
});

test("a limit far below the load is refused, and discarded, without scripts", { timeout }, async () => {
  const bucket = "service-0/bucket-0";
  const before = [await head(fleet), await text(fleet, bucket)];
  const page = await open(browser, address(fleet, bucket), { scripts: false, width: 375 });
  const limit = await field(page, "Limit").inputValue();
  await field(page, "Limit").fill("1");
  await save(page).click();
  assert.match(await page.locator("#edit").innerText(), /below half|would have dropped \d/i);
  assert.match(await page.locator("#effect").innerText(), /^Would drop nothing now, and \d\d(\.\d)?% of the last 7 days\./);
  assert.equal(await page.getByRole("checkbox", { name: /^Yes, / }).isChecked(), false);
  assert.equal(await field(page, "Limit").inputValue(), "1");
  await fits(page);
  await page.getByRole("link", { name: "Discard" }).click();
  assert.equal(await field(page, "Limit").inputValue(), limit);
  assert.deepEqual([await head(fleet), await text(fleet, bucket)], before);
  await page.context().close();
});

const long = "x".repeat(10_000);

// wrong are values of the fields of the form, and the field at which that is said.
const wrong = [
  ["limit", { limit: "" }], ["limit", { limit: "lots" }], ["limit", { limit: "-3" }], ["limit", { limit: "0" }],
  ["limit", { limit: "1e308" }], ["limit", { limit: "NaN" }], ["limit", { limit: long }],
  ["candidate", { candidate: "lots" }], ["candidate", { candidate: "-3" }], ["candidate", { candidate: "1e308" }],
  ["candidate", { candidate: "5", behavior: "allow" }],
  ["behavior", { behavior: "maybe" }], ["behavior", { behavior: "" }], ["behavior", { behavior: long }],
  ["reason", { reason: long }],
];

test("a wrong value is said at its field, and what was typed stays", { timeout }, async () => {
  const bucket = "service-0/bucket-4";
  const before = [await head(fleet), await text(fleet, bucket)];
  const page = await open(browser, address(fleet, bucket), { width: 375 });
  await field(page, "Limit").fill("lots");
  await field(page, "Candidate").fill("-3");
  await field(page, "Reason").fill("a reason");
  await save(page).click();
  await page.getByText("Not saved: two fields are wrong").waitFor();
  assert.deepEqual(await Promise.all(["Limit", "Candidate", "Reason"].map((l) => field(page, l).inputValue())), ["lots", "-3", "a reason"]);
  assert.equal(await page.evaluate(() => document.activeElement.id), "limit", "the focus is not at what is wrong");
  assert.match(await page.locator("#limit-error").innerText(), /^Write a number of requests per second/);
  await fits(page);
  quiet(page, 422);
  await accessible(page, "a form with two wrong fields");
  await shoot(page, "edit-wrong-375");
  for (const [name, values] of wrong) {
    const form = { name: bucket, base: String(before[0]), limit: "300", candidate: "", behavior: "deny", reason: "r", ...values };
    const answer = await post(fleet, "/bucket", form);
    const html = await answer.text();
    const what = JSON.stringify(values).slice(0, 60);
    assert.equal(answer.status, 422, what);
    assert.ok(html.includes(`id="${name}-error"`), `${what}: nothing is said at the field`);
    assert.ok(html.includes(`aria-describedby="${name}-error"`), `${what}: the field is not described by what is wrong`);
    if (values.reason === undefined) assert.ok(html.includes('value="r"'), `${what}: the reason is gone`);
  }
  assert.deepEqual([await head(fleet), await text(fleet, bucket)], before);
  await page.context().close();
});

test("an edit by keys alone, and the keys of the page", { timeout }, async () => {
  const bucket = "service-0/bucket-4";
  const page = await open(browser, fleet.url + "/buckets?q=service-0");
  const r = await head(fleet) + 1;
  await page.locator("#live-text", { hasText: /^Live/ }).waitFor();
  const focused = () => page.evaluate(() => document.activeElement.closest("tr")?.innerText ?? document.activeElement.id);
  for (let i = 0; i < 30 && !(await focused()).includes(bucket); i++) await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert.ok(!(await focused()).includes(bucket));
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL((u) => u.pathname === "/bucket");
  assert.equal(new URL(page.url()).searchParams.get("name"), bucket);

  const range = () => page.locator("#chart .tabs [aria-current]").innerText();
  assert.equal(await range(), "24 h");
  await page.keyboard.press("[");
  await page.waitForURL(/range=1h/);
  assert.equal(await range(), "1 h");
  await page.keyboard.press("]");
  await page.waitForURL((u) => !u.search.includes("range"));

  await page.keyboard.press("e");
  assert.equal(await focused(), "limit");
  const limit = Number((await field(page, "Limit").inputValue()).replaceAll(",", "")) + 7;
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(String(limit));
  for (let i = 0; i < 12 && await focused() !== "reason"; i++) await page.keyboard.press("Tab");
  assert.equal(await focused(), "reason");
  await page.keyboard.type("grows");
  await page.keyboard.press("Enter");
  await saved(page, r);
  assert.ok((await text(fleet, bucket)).includes(`{rps: ${limit}}`));

  await page.keyboard.press("?");
  await page.locator("#keys[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#keys:not([open])").waitFor();
  await page.keyboard.press("/");
  assert.equal(await focused(), "jump");
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  await page.waitForURL((u) => u.pathname === "/caps");
  assert.equal(await page.getByLabel("Service", { exact: true }).inputValue(), "service-0");
  for (const [key, path] of Object.entries({ o: "/", b: "/buckets", s: "/shadow", e: "/explain", c: "/caps", p: "/policies", r: "/rlc", f: "/fleet", a: "/alerts", h: "/changes" })) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForURL(fleet.url + path);
  }
  quiet(page);
  await page.context().close();
});
