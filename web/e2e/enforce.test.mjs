// Browser tests of what begins to be enforced, and ends: promoted from the bucket
// and from the verdicts, new, made of a cap, rolled back; against a real fleet.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { address, admitted, call, dropped, head, post, text, until } from "./limits.mjs";

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

test("the link in a 429 leads to why", { timeout }, async () => {
  const refusal = await dropped(fleet, "us-1", checkout);
  assert.equal(refusal.bucket, "payments/checkout-charge");
  const page = await open(browser, refusal.explain, { width: 375 });
  assert.equal(await page.getByLabel("Caller", { exact: true }).inputValue(), "checkout");
  const step = page.locator(".walk__step", { hasText: "payments/checkout-charge" });
  assert.match(await step.innerText(), /of 20\.0 rps/);
  assert.match(await step.locator(".cut").innerText(), /^\d+(\.\d+)?% dropped$/);
  assert.match(await page.locator(".walk__sum").innerText(), /dropped by payments\/checkout-charge, because [\d.]+ rps are offered and 20\.0 are allowed/);
  assert.ok((await page.locator("pre").first().innerText()).includes(refusal.explain));
  await fits(page);
  await accessible(page);
  quiet(page);
  await page.getByRole("link", { name: "Open bucket" }).click();
  await page.waitForURL(address(fleet, "payments/checkout-charge"));
  await page.context().close();
});

test("a bucket in shadow is enforced, with the evidence beside the button", { timeout }, async () => {
  const bucket = "service-0/bucket-3";
  const page = await open(browser, address(fleet, bucket));
  const r = await head(fleet) + 1;
  const evidence = page.locator("section:has(#evidence-title)");
  await until("the history was read", async () => {
    await page.reload();
    return !/is being read/.test(await evidence.innerText());
  });
  assert.match(await evidence.innerText(), /Safe to enforce\s+Would have dropped nothing in 35 days/);
  await evidence.getByLabel("Reason").fill("judged for weeks");
  await evidence.getByRole("button", { name: "Enforce the limit" }).click();
  await page.locator("#saved").getByText(`Saved as r${r} and active`).waitFor();
  await page.locator("#saved").getByText("2 of 2 hosts confirmed it.").waitFor();
  assert.equal(await page.locator("#evidence-title").count(), 0);
  assert.match(await page.locator(".head .states").innerText(), /Enforced/);
  assert.match(await page.locator("section:has(#history-title)").innerText(), /shadow → deny/);
  quiet(page);
  await accessible(page, "enforced");
  await shoot(page, "enforced");
  await page.context().close();
  assert.match(await text(fleet, bucket), /behavior: deny/);
});

test("a candidate becomes the limit, on a phone without scripts", { timeout }, async () => {
  const bucket = "service-0/bucket-2";
  const [, candidate] = (await text(fleet, bucket)).match(/candidate: \{rps: (\d+)\}/);
  const page = await open(browser, address(fleet, bucket), { scripts: false, width: 375 });
  const evidence = page.locator("section:has(#evidence-title)");
  assert.match(await evidence.innerText(), new RegExp(`Candidate ${candidate} rps\\s+Would hurt\\s`));
  await evidence.getByRole("button", { name: "Promote to limit" }).click();
  assert.match(await page.locator("#saved").innerText(), new RegExp(`^Saved as r${await head(fleet)} and active`));
  await fits(page);
  await page.context().close();
  const is = await text(fleet, bucket);
  assert.ok(is.includes(`limit: {rps: ${candidate}}`) && !is.includes("candidate"), is);
});

test("what was too little judged is not promoted from its own page", { timeout }, async () => {
  const page = await open(browser, address(fleet, "payments/each-caller"));
  const evidence = page.locator("section:has(#evidence-title)");
  assert.match(await evidence.innerText(), /Too little data|is being read/);
  assert.ok(await evidence.getByRole("button", { name: "Enforce the limit" }).isDisabled());
  await page.context().close();
});

// promoted waits until the page that proves it, which is one of a moment, says
// that the sidecars have it.
async function promoted(page, first, last) {
  await page.getByText(`Promoted 2 limits: saved as r${first} to r${last} and active`).waitFor();
  await until("all hosts confirmed", async () => {
    await page.reload();
    return /2 of 2 hosts confirmed it/.test(await page.locator(".notice--good").innerText());
  });
}

// back rolls one revision back, from the list of changes.
async function back(page, revision, reason) {
  await page.goto(fleet.url + "/changes");
  await page.getByRole("link", { name: `Roll back r${revision}`, exact: true }).click();
  await page.getByLabel("Reason").fill(reason);
  await page.getByRole("button", { name: `Roll back r${revision}` }).click();
}

for (const [scripts, names] of [[true, ["bucket-3", "bucket-8"]], [false, ["bucket-13", "bucket-18"]]]) {
  test(`two limits are promoted from the verdicts and rolled back, ${scripts ? "with" : "without"} scripts`, { timeout }, async () => {
    const buckets = names.map((name) => `service-1/${name}`);
    const page = await open(browser, fleet.url + "/shadow?service=service-1&sort=name", { scripts });
    const r = await head(fleet) + 1;
    for (const b of buckets) await page.getByRole("checkbox", { name: `Choose ${b}`, exact: true }).check();
    if (scripts) {
      await page.locator("#promote").getByText("2 chosen").waitFor();
      await page.locator("#chosen").getByText(/too little data/).waitFor();
      assert.ok(await page.getByRole("button", { name: "Promote 2 to deny" }).isEnabled());
    }
    await page.getByRole("button", { name: "Preview" }).click();
    await page.waitForURL(/\/shadow\/promote\?/);
    for (const b of buckets) await page.locator(".verdict", { hasText: b }).getByText("+ behavior: deny").waitFor();
    assert.equal(await head(fleet), r - 1, "a preview made a revision");
    if (scripts) {
      await fits(page);
      await accessible(page, "the preview of two");
      await shoot(page, "promote-preview");
    }
    await page.getByLabel("Reason").fill("all judged");
    await page.getByRole("button", { name: "Promote 2 to deny" }).click();
    await promoted(page, r, r + 1);
    for (const b of buckets) assert.match(await text(fleet, b), /behavior: deny/);
    assert.equal(await head(fleet), r + 1, "a reload promoted again");
    if (scripts) {
      quiet(page);
      await accessible(page, "the proof of two");
    }

    await back(page, r, "too early");
    await page.getByText(`Saved as r${r + 2} and active`).waitFor();
    assert.match(await text(fleet, buckets[0]), /behavior: allow/);
    assert.match(await text(fleet, buckets[1]), /behavior: deny/); // what else was changed stays
    if (scripts) quiet(page);
    await page.context().close();
  });
}

test("a roll back says first what it would do, and happens once", { timeout }, async () => {
  const bucket = "payments/checkout-charge";
  const r = await head(fleet) + 1;
  const raised = await post(fleet, "/bucket", { name: bucket, base: String(r - 1), limit: "60", behavior: "deny", reason: "more" });
  assert.equal(raised.status, 303);
  await admitted(fleet, "us-1", checkout);
  const page = await open(browser, fleet.url + "/changes");
  const row = page.getByRole("row", { name: bucket }).filter({ hasText: `r${r}` });
  assert.match(await row.innerText(), /limit 20(\.0)? → 60(\.0)?/);
  await row.getByRole("link", { name: `Roll back r${r}` }).click();
  const late = await open(browser, page.url(), { width: 375 }); // somebody else has it open too
  await page.getByText(/^Rolling this back now would drop [\d.]+% instead of /).waitFor();
  assert.match(await page.locator(".diff").innerText(), /- limit: \{rps: 60\}\n\+ limit: \{rps: 20\}/);
  quiet(page);
  await accessible(page, "a roll back");
  await shoot(page, "rollback");
  assert.equal(await head(fleet), r, "it was looked at alone");
  await page.getByLabel("Reason").fill("no, less");
  await page.getByRole("button", { name: `Roll back r${r}` }).click();
  // Once a whole minute of the load is known a guard rail minds.
  const saved = page.getByText(`Saved as r${r + 1} and active`), yes = page.getByRole("checkbox", { name: "Yes, pass the guard rails" });
  await saved.or(yes).first().waitFor();
  if (await yes.count() > 0) {
    assert.equal(await page.getByLabel("Reason").inputValue(), "no, less");
    await yes.check();
    await page.getByRole("button", { name: `Roll back r${r}` }).click();
    await saved.waitFor();
  }
  quiet(page, 422);
  await page.reload();
  assert.equal(await head(fleet), r + 1, "a reload rolled back again");
  assert.match(await text(fleet, bucket), /limit: \{rps: 20\}/);
  assert.equal((await dropped(fleet, "us-1", checkout)).bucket, bucket);

  await late.getByLabel("Reason").fill("me too");
  await late.getByRole("button", { name: `Roll back r${r}` }).click();
  await late.getByText(`Not rolled back: r${r + 1} was made while you were looking`).waitFor();
  await fits(late);
  quiet(late, 409);
  await accessible(late, "a roll back that came late");
  await late.context().close();
  const entry = (await call(fleet, "AuditService/ListAudit", { pageSize: 5 })).entries.find((e) => Number(e.revision) === r);
  await page.goto(`${fleet.url}/changes/rollback?entry=${entry.number}`);
  await page.locator(".empty__title", { hasText: "Nothing would change" }).waitFor();
  const twice = await post(fleet, "/changes/rollback", { entry: entry.number, seen: String(r + 1), reason: "again" });
  assert.equal(twice.status, 409);
  assert.match(await twice.text(), /Not rolled back: there is nothing to roll back/);
  assert.equal(await head(fleet), r + 1);
  await page.context().close();
});

test("a new bucket of a link is in force", { timeout }, async () => {
  const tester = { caller: "tester", method: "GET", path: "/charges/7" };
  await admitted(fleet, "us-1", tester);
  const page = await open(browser, fleet.url + "/bucket/new?service=payments&caller=tester&rps=1", { width: 375 });
  const r = await head(fleet) + 1;
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "tester");
  assert.ok(await page.getByRole("radio", { name: /^deny/ }).isChecked());
  await page.getByLabel("Reason").fill("it probes");
  await page.getByRole("button", { name: `Save as r${r}` }).click();
  await page.locator("#saved").getByText(`Saved as r${r} and active`).waitFor();
  await page.locator("#saved").getByText("2 of 2 hosts confirmed it.").waitFor();
  await fits(page);
  quiet(page);
  await accessible(page, "a new bucket");
  await page.reload();
  assert.equal(await head(fleet), r, "a reload made it again");
  await page.context().close();
  assert.match(await text(fleet, "payments/tester"), /match: \{caller: tester\}\s+limit: \{rps: 1\}\s+behavior: deny/);
  assert.equal((await dropped(fleet, "us-1", tester)).bucket, "payments/tester");
});

test("a bucket that is missing is made, of a service without limits, without scripts", { timeout }, async () => {
  const page = await open(browser, fleet.url + "/bucket?name=payments/refunds", { scripts: false });
  await page.getByRole("link", { name: "New bucket" }).click();
  const field = (label) => page.getByLabel(label, { exact: true });
  assert.deepEqual([await field("Service").inputValue(), await field("Name").inputValue()], ["payments", "refunds"]);
  await field("Service").fill("inventory");
  await field("Owner").fill("team-stock");
  await field("Procedure").fill("stock.v1.Stock/*");
  await page.getByText("Each caller has the limit for itself").click();
  await page.getByRole("radio", { name: /^zone/ }).check({ force: true });
  await field("Limit").fill("1,200");
  await page.getByRole("button", { name: "Preview" }).click();
  assert.match(await page.locator("#effect").innerText(), /^Drops nothing, in shadow/);
  await page.getByRole("button", { name: /^Save as r\d+$/ }).click();
  assert.match(await page.locator("#saved").innerText(), /^Saved as r\d+ and active/);
  await page.context().close();
  const is = await text(fleet, "inventory/refunds");
  for (const line of ['procedure: "stock.v1.Stock/*"', "per: caller", "scope: zone", "rps: 1200", "behavior: allow"]) assert.ok(is.includes(line), `${line} is not in ${is}`);
  const { buckets } = await call(fleet, "ViewService/ListBuckets");
  assert.equal(buckets.find((b) => b.bucket === "inventory/refunds")?.owner, "team-stock");
});

test("a cap is made permanent, and its bucket goes on when it is lifted", { timeout }, async () => {
  const looper = { caller: "looper", method: "GET", path: "/charges/7" };
  const { cap } = await call(fleet, "IncidentService/PlaceCap", { service: "payments", caller: "looper", rps: 2, durationMs: 3_600_000, reason: "loops" });
  const page = await open(browser, fleet.url + "/caps", { width: 375 });
  await page.locator(".cap", { hasText: "looper" }).getByRole("link", { name: "Make permanent" }).click();
  await page.waitForURL(/\/bucket\/new\?/);
  const r = await head(fleet) + 1;
  assert.deepEqual(await Promise.all(["Service", "Name", "Caller", "Limit"].map((l) => page.getByLabel(l, { exact: true }).inputValue())), ["payments", "looper", "looper", "2"]);
  await page.getByLabel("Reason").fill("it will not end");
  await page.getByRole("button", { name: `Save as r${r}` }).click();
  await page.locator("#saved").getByText("2 of 2 hosts confirmed it.").waitFor();
  quiet(page);
  await page.goto(fleet.url + "/caps");
  await page.locator(".cap", { hasText: "looper" }).getByRole("button", { name: "Lift now" }).click();
  await page.getByText("Lifted the cap on looper").first().waitFor();
  await page.context().close();
  const { caps = [] } = await call(fleet, "IncidentService/ListCaps");
  assert.ok(!caps.some((c) => c.cap.id === cap.cap.id && !c.liftedAtMs), JSON.stringify(caps));
  await until("the bucket drops, not the cap", async () => (await dropped(fleet, "eu-1", looper)).bucket === "payments/looper");
});

const long = "x".repeat(10_000);

// wrong are values of the form of a new bucket, and the field at which that is said.
const wrong = [
  ["service", { service: "" }], ["service", { service: "no such\nname" }], ["service", { service: long }],
  ["bucket", { bucket: "" }], ["bucket", { bucket: "a/b" }], ["bucket", { bucket: "checkout-charge" }], ["bucket", { bucket: long }],
  ["owner", { owner: long, service: "other" }],
  ["caller", { caller: "a*b" }], ["caller", { caller: long }], ["procedure", { procedure: "*x*" }], ["procedure", { procedure: long }],
  ["scope", { scope: "town" }], ["scope", { scope: "" }],
  ["limit", { limit: "" }], ["limit", { limit: "lots" }], ["limit", { limit: "-3" }], ["limit", { limit: "1e308" }], ["limit", { limit: long }],
  ["behavior", { behavior: "maybe" }], ["reason", { reason: long }],
];

test("a wrong value of a new bucket is said at its field, and what was typed stays", { timeout }, async () => {
  const r = await head(fleet);
  const page = await open(browser, fleet.url + "/bucket/new?service=payments", { width: 375 });
  await page.getByLabel("Name", { exact: true }).fill("a/b");
  await page.getByLabel("Limit", { exact: true }).fill("lots");
  await page.getByLabel("Caller", { exact: true }).fill("someone");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Not saved: two fields are wrong").waitFor();
  assert.deepEqual(await Promise.all(["Name", "Limit", "Caller"].map((l) => page.getByLabel(l, { exact: true }).inputValue())), ["a/b", "lots", "someone"]);
  await fits(page);
  quiet(page, 422);
  await accessible(page, "a new bucket with two wrong fields");
  await page.context().close();
  const right = { service: "payments", bucket: "odd", owner: "", caller: "someone", procedure: "", scope: "global", limit: "5", behavior: "allow", reason: "r" };
  for (const [name, values] of wrong) {
    const answer = await post(fleet, "/bucket/new", { ...right, ...values });
    const html = await answer.text();
    const what = JSON.stringify(values).slice(0, 60);
    assert.equal(answer.status, 422, what);
    assert.ok(html.includes(`id="${name}-error"`), `${what}: nothing is said at the field`);
    if (!values.reason) assert.ok(html.includes('value="r"'), `${what}: the reason is gone`);
  }
  assert.equal(await head(fleet), r);
});

test("a wrong promotion or roll back changes nothing and is no fault", { timeout }, async () => {
  const r = await head(fleet);
  const refused = [
    ["/bucket/promote", { name: "service-1/bucket-23", reason: long }, 422],
    ["/bucket/promote", { name: "service-1/nothing", reason: "r" }, 404],
    ["/bucket/rollback", { name: "service-1/bucket-23", revision: "many" }, 422],
    ["/bucket/rollback", { name: "service-1/bucket-23", revision: "1e308" }, 422],
    ["/shadow/promote", { do: "promote" }, 422],
    ["/shadow/promote", { do: "promote", bucket: long }, 404],
    ["/shadow/promote", { do: "promote", bucket: "service-1/bucket-23", reason: long }, 422],
    ["/changes/rollback", { entry: "many", seen: String(r), reason: "r" }, 404],
    ["/changes/rollback", { entry: "1", seen: String(r), reason: "" }, 422],
    ["/changes/rollback", { entry: "1", seen: String(r), reason: long }, 422],
  ];
  for (const [path, form, status] of refused) {
    const answer = await post(fleet, path, form);
    const html = await answer.text();
    assert.equal(answer.status, status, `${path} ${JSON.stringify(form).slice(0, 80)}`);
    assert.match(html, /<h1>/, `${path}: no page`);
  }
  assert.equal(await head(fleet), r);
});

test("filters of the buckets are in the address, and survive reload and back", { timeout }, async () => {
  const page = await open(browser, fleet.url + "/buckets");
  await page.getByLabel("Search", { exact: true }).fill("bucket-1");
  await page.getByLabel("Service", { exact: true }).fill("service-0");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/service=service-0/);
  const rows = () => page.locator("#buckets-table .bucket__name").allInnerTexts();
  const shown = await rows();
  assert.deepEqual(shown, ["service-0/bucket-1"]);
  const url = page.url();
  await page.reload();
  assert.deepEqual(await rows(), shown);
  await page.getByRole("link", { name: "service-0/bucket-1" }).click();
  await page.waitForURL((u) => u.pathname === "/bucket");
  await page.goBack();
  await page.waitForURL(url);
  assert.deepEqual(await rows(), shown);
  assert.deepEqual([await page.getByLabel("Search", { exact: true }).inputValue(), await page.getByLabel("Service", { exact: true }).inputValue()], ["bucket-1", "service-0"]);
  await page.getByRole("link", { name: /^Without the filter Service/ }).click();
  await page.waitForURL((u) => !u.search.includes("service="));
  assert.ok((await rows()).length > 1);
  quiet(page);
  await page.context().close();
});
