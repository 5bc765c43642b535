// Browser tests of what needs a person: alerts that a real fleet raises, muted and
// unmuted, their rules for Prometheus, and what the fleet's page says of nodes that
// are lost and of their return.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { must } from "./people.mjs";

let fleet, browser;

before(async () => {
  fleet = await Fleet.start({ buckets: 60, history: 5 });
  browser = await launch();
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

const overLimit = "ALERT_RULE_OVER_LIMIT", hostLost = "ALERT_RULE_HOST_LOST";

// alertOf returns an alert as the API has it; undefined: it is quiet.
async function alertOf(rule, subject) {
  const { alerts = [] } = await must(fleet, "AlertService/ListAlerts", {});
  return alerts.find((a) => a.rule === rule && a.subject === subject);
}

// until asks a question until the answer is yes.
async function until(what, within, question) {
  const deadline = Date.now() + within;
  while (!await question()) {
    assert.ok(Date.now() < deadline, `${what}: not within ${within / 1000} s`);
    await sleep(100);
  }
}

const zones = (page) => page.locator(".stat").filter({ has: page.getByText("Zones", { exact: true }) });
const line = (page, text) => page.locator("#alerts tbody tr").filter({ hasText: text });

test("the rules for Prometheus are those that promtool takes", { timeout: 180_000 }, async () => {
  const page = await open(browser, fleet.url + "/alerts");
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download rules" }).click();
  assert.equal((await download).suggestedFilename(), "grl-rules.yml");
  const file = join(fleet.dir, "grl-rules.yml");
  writeFileSync(file, await (await fetch(fleet.url + "/alerts/rules")).text());
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", file], { encoding: "utf8" });
  assert.equal(status, 0, `promtool (Debian: prometheus): ${stdout}${stderr}`);
  assert.match(stdout, /SUCCESS: 7 rules found/);
  quiet(page);
  await page.context().close();
});

test("a sidecar that is killed: the fleet says so, an alert fires, is muted and unmuted, and both end with its return", { timeout: 300_000 }, async (t) => {
  const page = await open(browser, fleet.url + "/fleet");
  await page.locator(".stat", { hasText: "Hosts reporting" }).getByText(/^2$/).waitFor({ timeout: 180_000 });
  t.after(() => fleet.up("sidecar-us"));
  await fleet.down("sidecar-us");
  await page.locator(".stat", { hasText: "Hosts reporting" }).getByText(/^1$/).waitFor({ timeout: 180_000 });
  quiet(page);
  await shoot(page, "fleet-host-lost-1440-light");
  await accessible(page, "a fleet with a lost host");

  await page.goto(fleet.url + "/alerts");
  await line(page, "1 host of us-1 is silent").getByText("Firing").waitFor({ timeout: 180_000 });
  assert.equal((await alertOf(hostLost, "us-1")).state, "ALERT_STATE_FIRING");
  assert.match(await page.title(), /alerts? firing/);
  await page.reload(); // the navigation is as it was when the page was opened
  const due = page.locator(".nav__count--due").first();
  const count = Number(await due.innerText());
  await shoot(page, "alerts-firing-1440-light");
  await accessible(page, "a firing alert");
  await page.goto(fleet.url + "/");
  await page.getByText("1 host of us-1 is silent").first().waitFor();

  // Muted on a phone: not without a reason, and for as long as is chosen.
  const phone = await open(browser, fleet.url + "/alerts", { width: 375 });
  await line(phone, "1 host of us-1 is silent").getByRole("link", { name: /^Mute/ }).click();
  const form = phone.locator("form[action='/alerts/mute']");
  await form.getByRole("radio", { name: "4 h", exact: true }).check();
  await form.getByRole("button", { name: "Mute" }).click();
  assert.equal(await form.getByLabel("Reason").evaluate((e) => e.validity.valueMissing), true, "the browser does not ask for a reason");
  await form.getByLabel("Reason").fill("it is being replaced");
  await fits(phone, "the form on a phone");
  await accessible(phone, "the form on a phone");
  await form.getByRole("button", { name: "Mute" }).click();
  await phone.getByText("Muted: Host lost of us-1").waitFor();
  const muted = await alertOf(hostLost, "us-1");
  const left = (Number(muted.mutedUntilMs) - Date.now()) / 3_600_000;
  assert.ok(left > 3.9 && left <= 4, `muted for ${left} h`);
  await shoot(phone, "alerts-muted-375-light");
  await accessible(phone, "a muted alert");
  quiet(phone);
  await until("the navigation counts what is muted", 10_000, async () => {
    await page.reload();
    return await due.count() === 0 || Number(await due.innerText()) < count;
  });
  assert.equal(await page.locator("main").getByText("1 host of us-1 is silent").count(), 0, "the overview goes on to ask for it");

  // Unmuted without scripts.
  const plain = await open(browser, fleet.url + "/alerts", { scripts: false });
  await line(plain, "us-1").getByRole("link", { name: /^Unmute/ }).click();
  await plain.getByLabel("Reason").fill("it is forgotten else");
  await plain.getByRole("button", { name: "Unmute" }).click();
  assert.match(await plain.locator("main").innerText(), /Not muted: Host lost of us-1/);
  assert.equal((await alertOf(hostLost, "us-1")).mutedUntilMs ?? "0", "0");
  const { entries } = await must(fleet, "AuditService/ListAudit", { pageSize: 10 });
  assert.deepEqual(entries.filter((e) => e.action.startsWith("alert.")).map((e) => [e.action, e.reason]),
    [["alert.unmute", "it is forgotten else"], ["alert.mute", "it is being replaced"]]);

  await fleet.up("sidecar-us");
  await page.goto(fleet.url + "/fleet");
  await page.locator(".stat", { hasText: "Hosts reporting" }).getByText(/^2$/).waitFor({ timeout: 180_000 });
  await until("the alert ends with the return of the host", 120_000, async () => !await alertOf(hostLost, "us-1"));
  await phone.reload();
  assert.equal(await line(phone, "host of us-1").count(), 0);
  for (const p of [page, phone, plain]) await p.context().close();
});

test("an aggregator that is killed: its zone is cut off, in words, and comes back", { timeout: 300_000 }, async (t) => {
  const page = await open(browser, fleet.url + "/fleet");
  await zones(page).getByText("none is cut off").waitFor({ timeout: 30_000 });
  t.after(() => fleet.up("far"));
  await fleet.down("far");
  await page.locator("#fleet").getByText("Cut off").first().waitFor({ timeout: 180_000 });
  await page.locator("#fleet").getByText(/^Autonomous for \d+ s more: enforces its last share/).waitFor();
  assert.match(await zones(page).innerText(), /us-1/);
  quiet(page);
  await shoot(page, "fleet-zone-lost-1440-light");
  await accessible(page, "a zone that is cut off");
  await page.setViewportSize({ width: 375, height: 900 });
  await fits(page, "a zone that is cut off, on a phone");
  await page.locator("#fleet").getByText(/^Its hosts admit everything by now\./).waitFor({ timeout: 90_000 });
  assert.equal((await alertOf("ALERT_RULE_DIRECTIVE_STALE", "us-1")).state, "ALERT_STATE_FIRING");
  fleet.up("far");
  await page.locator("#fleet").getByText("Cut off").first().waitFor({ state: "hidden", timeout: 60_000 });
  await zones(page).getByText("none is cut off").waitFor({ timeout: 30_000 });
  quiet(page);
  await page.context().close();
});

test("a mute that makes no sense is refused at the field, and mutes nothing", { timeout: 180_000 }, async () => {
  const page = await open(browser, fleet.url + "/alerts?rule=over_limit&subject=payments/checkout-charge", { scripts: false });
  const mutes = async () => { // an alert that is not yet one can be muted: the audit says so alone
    const { entries = [] } = await must(fleet, "AuditService/ListAudit", { pageSize: 100 });
    return entries.filter((e) => e.action === "alert.mute").length;
  };
  const before = await mutes();
  const refused = async (form) => {
    const answer = await fetch(fleet.url + "/alerts/mute", {
      method: "POST", redirect: "manual", body: new URLSearchParams({ rule: "over_limit", subject: "payments/checkout-charge", duration: "60", reason: "known", ...form }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  for (const [form, field] of [
    [{ reason: "" }, "reason"], [{ reason: " \t " }, "reason"], [{ reason: "x".repeat(10_000) }, "reason"], [{ reason: "a\u0000b" }, "reason"],
    [{ duration: "soon" }, "duration"], [{ duration: "-5" }, "duration"], [{ duration: "0" }, "duration"],
    [{ duration: "1e308" }, "duration"], [{ duration: "1441" }, "duration"], [{ rule: "no_such_rule" }, ""],
  ]) {
    const what = JSON.stringify(form).slice(0, 60);
    const { status, text } = await refused(form);
    assert.ok(status === 400 || status === 422, `${what}: ${status}`);
    if (field !== "") assert.ok(text.includes(`id="${field}-error"`), `${what}: nothing is said at ${field}`);
    if (form.reason?.length > 100) assert.ok(text.includes(form.reason), "what was typed is gone");
  }
  assert.equal(await page.locator("#reason").getAttribute("required"), "");
  assert.equal(await mutes(), before, "something was muted");
  await page.context().close();
});

// It is over the limit since the fleet began, while the tests above ran. What a
// machine with much else to do interrupts begins anew.
test("a bucket over its limit fires after five minutes, where one looks", { timeout: 900_000 }, async () => {
  const subject = "payments/checkout-charge";
  await until("over the limit", 840_000, async () => (await alertOf(overLimit, subject))?.state === "ALERT_STATE_FIRING");
  const { text, sinceMs } = await alertOf(overLimit, subject);
  assert.ok(Number(sinceMs) <= Date.now());
  const page = await open(browser, fleet.url + "/alerts");
  await line(page, subject).getByText("Firing").waitFor();
  const share = Number((await line(page, subject).innerText()).match(/drops ([\d.]+)%/)[1]);
  assert.ok(share > 20 && share < 80, `${text}: of 60 rps 20 are admitted`);
  await page.goto(fleet.url + "/");
  await page.locator("main").getByText("Over limit:").first().waitFor();
  await page.goto(fleet.url + "/alerts");
  await line(page, subject).getByRole("link", { name: new RegExp(`^${subject} drops`) }).click();
  await page.waitForURL((url) => url.pathname === "/bucket" && url.searchParams.get("name") === subject);
  quiet(page);
  await page.context().close();
});
