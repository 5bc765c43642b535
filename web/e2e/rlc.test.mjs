// Browser tests of what the RLC proposes: asked for, filtered, chosen, approved,
// rejected and rolled back, as the limits and the sidecars then have it; against a
// real fleet with weeks of history.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { must } from "./people.mjs";
import { agreed, apply, computed, nightly } from "./rlc.mjs";

let fleet, browser;
let first; // the run of the first policies

before(async () => {
  fleet = await Fleet.start({ buckets: 60, history: 20 });
  browser = await launch();
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

// results returns what a run found, by bucket.
async function results(run) {
  const { results = [] } = await must(fleet, "RLCService/GetRun", { id: run, pageSize: 500 });
  return Object.fromEntries(results.map((r) => [r.bucket, r]));
}

const proposed = (all) => Object.values(all).filter((r) => r.outcome === "RUN_OUTCOME_PROPOSED");
const pending = (all) => proposed(all).filter((r) => r.state === "PROPOSAL_STATE_PENDING").map((r) => r.bucket).sort();
const moves = (r) => r.after.rps / r.before.rps - 1;
const lower = (r) => moves(r) < 0;
const large = (r) => Math.abs(moves(r)) > 0.2 + 1e-9;

// limits returns the limits that hold, by bucket, and their revision.
async function limits(...services) {
  const out = {};
  for (const service of services) {
    const { buckets = [] } = await must(fleet, "ViewService/ListBuckets", { service, pageSize: 1000 });
    for (const b of buckets) out[b.bucket] = b.limitRps;
  }
  return out;
}

const revision = async () => Number((await must(fleet, "ConfigService/ListRevisions", { pageSize: 1 })).revisions[0].number);

// rps prints a rate as the pages do.
function rps(v) {
  return v >= 100 ? Math.round(v).toLocaleString("en") : v.toFixed(v >= 10 ? 1 : 2);
}

// ask has a run made by the form, and returns its number when it is over.
async function ask(page, { policy = "", service = "" } = {}) {
  await page.goto(fleet.url + "/rlc");
  await page.locator("#run-policy").fill(policy);
  await page.locator("#run-service").fill(service);
  await page.getByRole("button", { name: "Run now" }).click();
  const notice = page.getByText(/^Run \d+ is the one that you asked for$/);
  await notice.waitFor({ timeout: 30_000 });
  const number = Number((await notice.innerText()).match(/\d+/)[0]);
  await page.getByRole("link", { name: "See what it finds" }).click();
  await page.waitForURL(/\/rlc\/run\?id=/);
  const over = async () => (await must(fleet, "RLCService/GetRun", { id: number, pageSize: 1 })).run.state !== "STATE_RUNNING";
  for (let i = 0; !await over(); i++) {
    assert.ok(i < 600, "the run is not over after 60 s");
    await sleep(100);
  }
  await page.reload();
  return number;
}

const row = (page, bucket) => page.locator("tbody tr").filter({ has: page.getByRole("link", { name: bucket, exact: true }) });
const tick = (page, bucket) => page.getByRole("checkbox", { name: `Choose ${bucket}`, exact: true }).check();

// rollBack sends the form, with a tick where a guard rail minds: the callers of the
// fleet send more than the limit was, as soon as a minute of it is in the history.
async function rollBack(page) {
  const rails = page.getByLabel("Yes, pass the guard rails");
  if (await rails.count() > 0) await rails.check();
  const answer = page.waitForResponse((r) => r.request().method() === "POST");
  await page.getByRole("button", { name: /^Roll back to/ }).click();
  assert.equal((await answer).status(), 303, await page.locator("main").innerText());
}

test("nothing was computed yet, and a run that cannot be is refused", { timeout: 300_000 }, async () => {
  const page = await open(browser, fleet.url + "/rlc");
  await page.getByText("Nothing was computed yet").waitFor();
  assert.match(await page.locator("section", { has: page.locator("#configurator") }).innerText(), /At work/);
  quiet(page);
  await shoot(page, "rlc-none-1440-light");
  await accessible(page);
  for (const [field, typed] of [["policy", "no-such"], ["service", "no such service"], ["policy", "x".repeat(200)], ["service", "-1"]]) {
    await page.goto(fleet.url + "/rlc");
    await page.locator(`#run-${field}`).fill(typed);
    await page.getByRole("button", { name: "Run now" }).click();
    await page.locator("#problem").waitFor();
    assert.match(await page.locator("#problem").innerText(), /No run was asked for/);
    assert.equal(await page.locator(`#run-${field}`).inputValue(), typed);
  }
  await accessible(page, "a refused run");
  assert.deepEqual(await must(fleet, "RLCService/ListRuns", {}), {});
  await page.context().close();
});

test("policies lead to a run, whose page shows each proposal as the API has it", { timeout: 300_000 }, async () => {
  const page = await open(browser, fleet.url + "/rlc");
  first = await computed(fleet, await apply(fleet, nightly, agreed(24)));
  await page.getByRole("link", { name: String(first), exact: true }).click(); // the list updates in place
  await page.waitForURL(/\/rlc\/run\?id=/);
  const all = await results(first), those = proposed(all);
  assert.ok(those.some((r) => lower(r)) && those.some((r) => large(r)) && those.filter((r) => !lower(r) && !large(r)).length > 1, JSON.stringify(those.map((r) => [r.bucket, moves(r)])));
  assert.equal(await page.getByRole("region", { name: "Table of results" }).locator("tbody tr").count(), those.length);
  for (const r of those) {
    const line = row(page, r.bucket);
    const text = (await line.innerText()).replace(/\s+/g, " ");
    assert.ok(text.includes(`${rps(r.before.rps)} → ${rps(r.after.rps)}`), `${r.bucket}: ${text}`);
    assert.ok(text.includes(`${lower(r) ? "▼" : "▲"} `), `${r.bucket}: ${text}`);
    const reason = await line.locator("details p").first().textContent();
    assert.equal(reason.trim(), r.reason);
    if (r.policy !== "nightly") continue;
    const label = await line.locator(".spark").getAttribute("aria-label");
    assert.ok(label.endsWith(`with the old limit ${rps(r.before.rps)} and the new one ${rps(r.after.rps)}`), label);
  }
  quiet(page);
  await shoot(page, "rlc-run-1440-light");
  await accessible(page);
  await page.setViewportSize({ width: 375, height: 900 });
  await fits(page);
  await shoot(page, "rlc-run-375-light");
  await accessible(page, "a run on a phone");
  await page.context().close();
});

test("tabs and filters show what they say, and their address keeps it", { timeout: 300_000 }, async () => {
  const all = await results(first), those = proposed(all);
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}`);
  const names = async () => {
    const shown = await page.locator("tbody .bucket__name").allInnerTexts();
    return shown.map((n) => n.replace(/\s/g, "")).sort();
  };
  const of = (f) => those.filter(f).map((r) => r.bucket).sort();
  for (const [tab, wanted] of [
    ["Lower", of(lower)], ["Over ±20%", of(large)], ["Refused", Object.values(all).filter((r) => r.outcome === "RUN_OUTCOME_REFUSED").map((r) => r.bucket).sort()],
    ["Unchanged", Object.values(all).filter((r) => r.outcome === "RUN_OUTCOME_UNCHANGED").map((r) => r.bucket).sort()],
  ]) {
    if (wanted.length === 0) continue;
    await page.getByRole("link", { name: `${tab} ${wanted.length}` }).click();
    await page.waitForURL(/tab=/);
    assert.deepEqual(await names(), wanted.slice(0, 50), tab);
  }
  await page.goto(`${fleet.url}/rlc/run?id=${first}`);
  const filters = page.getByRole("search", { name: "Results" });
  await filters.getByLabel("Service").fill("service-1");
  await filters.getByLabel("Policy").selectOption("nightly");
  await filters.getByRole("button", { name: "Apply" }).click();
  const wanted = of((r) => r.bucket.startsWith("service-1/"));
  assert.deepEqual(await names(), wanted);
  await page.reload();
  assert.deepEqual(await names(), wanted);
  await filters.getByLabel("Search").fill("no-such-bucket");
  await filters.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Nothing matches").waitFor();
  await accessible(page);
  await page.goBack();
  assert.deepEqual(await names(), wanted);
  quiet(page);
  await page.context().close();
});

test("what makes no sense is refused, and decides nothing", { timeout: 300_000 }, async () => {
  const was = [await results(first), await revision()];
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}`);
  await page.locator("#reason").fill("just so");
  await page.getByRole("button", { name: "Approve chosen" }).click();
  await page.locator("#problem").getByText("Nothing is chosen").waitFor();
  assert.equal(await page.locator("#reason").inputValue(), "just so");
  await tick(page, "service-0/bucket-2");
  await page.locator("#reason").fill("");
  await page.getByLabel("Pass the guard rails").check();
  await page.getByRole("button", { name: "Approve chosen" }).click();
  await page.locator("#problem").getByText("a reason is missing").waitFor();
  assert.equal(await page.locator("#reason").getAttribute("aria-invalid"), "true");
  assert.ok(await page.getByRole("checkbox", { name: "Choose service-0/bucket-2" }).isChecked(), "the choice is gone");
  quiet(page, 422);
  await accessible(page);
  for (const form of [
    { bucket: "no/such", reason: "x" }, { bucket: "service-0/bucket-2", reason: "x".repeat(10_000) },
    { bucket: "service-0/bucket-2", reason: "x", id: "77" }, { bucket: "service-0/bucket-2", reason: "x", id: "-1" },
  ]) {
    const status = await page.evaluate(async (form) => (await fetch("/rlc/decide", {
      method: "POST", redirect: "manual", body: new URLSearchParams({ do: "approve", ...form }),
    })).status, { id: String(first), ...form });
    assert.ok(status >= 400 && status < 500, `${JSON.stringify(form).slice(0, 60)}: ${status}`);
  }
  assert.deepEqual([await results(first), await revision()], was);
  await page.context().close();
});

test("choose all takes neither lower nor large ones; approved together as one revision", { timeout: 300_000 }, async () => {
  const all = await results(first);
  const wanted = proposed(all).filter((r) => !lower(r) && !large(r)).map((r) => r.bucket).sort();
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}`);
  assert.match(await page.locator(".bulk").innerText(), /Without \d+ lower and \d+ over ±20%/);
  await page.getByRole("link", { name: `Choose all ${wanted.length}` }).click();
  await page.waitForURL(/choose=all/);
  assert.equal(await page.locator("input[name=bucket]:checked").count(), wanted.length);
  assert.match(await page.locator("#chosen").innerText(), new RegExp(`^${wanted.length} chosen\\s+${wanted.length} higher`));
  await accessible(page);

  // The difference that is shown is what is committed.
  const bucket = "service-0/bucket-2", before = await revision();
  await row(page, bucket).locator("summary").click();
  const lines = await row(page, bucket).locator("details").innerText();
  const plus = lines.match(/^\s*\+\s*(.*limit.*)$/m)[1].trim(), minus = lines.match(/^\s*[-−]\s*(.*limit.*)$/m)[1].trim();
  await page.locator("#reason").fill("as computed");
  await page.getByRole("button", { name: "Approve chosen" }).click();
  const made = before + 1;
  await page.getByText(`Approved: ${wanted.length} limits, saved as r${made}`).waitFor();
  const text = async (revision) => {
    const { files } = await must(fleet, "ConfigService/GetConfiguration", { revision, service: "service-0" });
    return Buffer.from(files[0].data, "base64").toString();
  };
  const [old, now] = [await text(before), await text(made)];
  const section = (text) => text.slice(text.indexOf("name: bucket-2\n")).split(/^ {2}- name/m)[0];
  assert.ok(section(old).includes(minus) && section(now).includes(plus), `${minus} → ${plus}\n${section(old)}${section(now)}`);

  const is = await results(first);
  assert.deepEqual(proposed(is).filter((r) => r.state === "PROPOSAL_STATE_APPROVED").map((r) => r.bucket).sort(), wanted);
  assert.deepEqual(pending(is), pending(all).filter((b) => !wanted.includes(b)));
  const held = await limits("service-0", "service-1", "payments");
  for (const r of proposed(all)) assert.equal(held[r.bucket], wanted.includes(r.bucket) ? r.after.rps : r.before.rps, r.bucket);
  await page.reload();
  assert.equal(await revision(), made, "a reload approved again");
  quiet(page);
  await shoot(page, "rlc-approved-1440-light");
  await accessible(page);
  await page.context().close();
});

test("without scripts, on a phone: one lower limit is approved from its own tab", { timeout: 300_000 }, async () => {
  const r = proposed(await results(first)).find((r) => lower(r) && r.state === "PROPOSAL_STATE_PENDING");
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}&tab=lower`, { scripts: false, width: 375 });
  await tick(page, r.bucket);
  await page.getByRole("button", { name: "Preview" }).click();
  assert.match(await page.locator("#chosen").innerText(), /1 chosen\s+1 lower; (no|the highest minute of)/);
  assert.ok(await page.getByRole("checkbox", { name: `Choose ${r.bucket}`, exact: true }).isChecked());
  await page.locator("#reason").fill("it is never near");
  await page.getByRole("button", { name: "Approve chosen" }).click();
  assert.match(await page.locator("main").innerText(), /Approved: 1 limit, saved as r\d+/);
  assert.equal((await results(first))[r.bucket].state, "PROPOSAL_STATE_APPROVED");
  assert.equal((await limits(r.bucket.split("/")[0]))[r.bucket], r.after.rps);
  await page.context().close();
});

test("what is rejected stays as it was, and does not wait any more", { timeout: 300_000 }, async () => {
  const [a, b] = proposed(await results(first)).filter((r) => large(r) && r.state === "PROPOSAL_STATE_PENDING");
  const was = await revision();
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}&tab=large`);
  await tick(page, a.bucket);
  await tick(page, b.bucket);
  await page.locator("#chosen", { hasText: "2 chosen" }).waitFor();
  await page.locator("#reason").fill("they shall not grow");
  await page.getByRole("button", { name: "Reject chosen" }).click();
  await page.getByText("2 proposals of this run rejected").waitFor();
  const is = await results(first);
  for (const r of [a, b]) assert.equal(is[r.bucket].state, "PROPOSAL_STATE_REJECTED");
  assert.equal(await revision(), was);
  await row(page, a.bucket).getByText(/Rejected/).filter({ visible: true }).waitFor();
  assert.equal(await row(page, a.bucket).getByRole("checkbox").count(), 0);
  quiet(page);
  await page.context().close();
});

test("a run is rolled back: what would change is said first, and not unseen", { timeout: 300_000 }, async () => {
  const { run } = await must(fleet, "RLCService/GetRun", { id: first, pageSize: 1 });
  const page = await open(browser, `${fleet.url}/rlc/run?id=${first}`);
  await page.getByRole("link", { name: "Roll back run" }).click();
  await page.getByText(new RegExp(`^Back to r${run.baseRevision}: changes \\d+ buckets`)).waitFor();
  assert.match(await page.locator("main").innerText(), /limit: \{?rps/);
  await accessible(page);
  await shoot(page, "rlc-rollback-1440-light");
  const approved = proposed(await results(first)).filter((r) => r.state === "PROPOSAL_STATE_APPROVED");

  // Somebody approves one more meanwhile.
  const late = pending(await results(first))[0];
  await must(fleet, "RLCService/DecideProposals", { run: first, buckets: [late], approve: true, reason: "meanwhile" });
  const made = await revision();
  await page.getByLabel("Reason").fill("too early");
  await page.getByRole("button", { name: /^Roll back to/ }).click();
  await page.locator("#problem").getByText(`Not rolled back: r${made} was made while you were looking`).waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), "too early");
  assert.equal(await revision(), made);
  quiet(page, 409);
  await rollBack(page);
  await page.getByText(`Rolled back to r${run.baseRevision}, as r${made + 1}`).waitFor();
  const held = await limits("service-0", "service-1", "payments");
  for (const r of [...approved, (await results(first))[late]]) assert.equal(held[r.bucket], r.before.rps, r.bucket);
  quiet(page, 409);
  await page.context().close();
});

test("an approved limit holds at the sidecars, and so does its rollback", { timeout: 300_000 }, async () => {
  const charge = { caller: "checkout", method: "POST", path: "/charges" };
  // until returns when a sidecar lets most of 25 requests pass, or does not. They
  // come slowly, so that they add little to the 60 rps that the callers send: of a
  // limit of 20 two thirds are dropped, of one of 60 less than a tenth.
  const until = async (what, most) => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      let passed = 0;
      for (let i = 0; i < 25; i++) {
        if (await fleet.ask("eu-1", charge) === 200) passed++;
        await sleep(200);
      }
      if (most === passed >= 20) return;
      assert.ok(Date.now() < deadline, `${what}: ${passed} of 25 pass`);
    }
  };
  await apply(fleet, nightly, agreed(60));
  const page = await open(browser, fleet.url + "/rlc");
  const run = await ask(page, { policy: "agreed" });
  const bucket = "payments/checkout-charge";
  assert.equal((await results(run))[bucket].before.rps, 20);
  await until("at three times the limit", false);
  await page.getByRole("link", { name: /^Over ±20%/ }).click();
  await tick(page, bucket);
  await page.getByRole("button", { name: "Approve chosen" }).click();
  await page.getByText(/^Approved: 1 limit, saved as r\d+/).waitFor();
  assert.equal((await limits("payments"))[bucket], 60);
  await until("at the limit", true);

  // Now it is as agreed: a run has nothing to propose.
  const next = await ask(page, { policy: "agreed" });
  await page.getByText("Nothing to change").first().waitFor();
  await page.getByRole("link", { name: /^Proposed 0/ }).click();
  await page.getByText("Nothing here").waitFor();
  assert.deepEqual(proposed(await results(next)), []);
  await accessible(page, "a run without proposals");
  await shoot(page, "rlc-run-none-1440-light");

  await page.goto(`${fleet.url}/rlc/run?id=${run}`);
  await page.getByRole("link", { name: "Roll back run" }).click();
  await page.getByLabel("Reason").fill("it was for a day");
  await rollBack(page);
  await page.getByText(/^Rolled back to r\d+, as r\d+/).waitFor();
  assert.equal((await limits("payments"))[bucket], 20);
  await until("after the rollback", false);
  quiet(page);
  await page.context().close();
});
