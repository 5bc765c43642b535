// Browser tests of policies: made in the form and as YAML, tried on the past,
// refused, saved, compared, rolled back and deleted; against a real fleet with
// weeks of history.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Fleet } from "./fleet.mjs";
import { accessible, fits, launch, open, quiet, shoot } from "./browser.mjs";
import { must } from "./people.mjs";
import { apply } from "./rlc.mjs";

let fleet, browser;

before(async () => {
  fleet = await Fleet.start({ buckets: 60, history: 10 });
  browser = await launch();
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

// saved returns the policies as the API has them: the number of their revision, 0
// before the first one, and the texts by name.
async function saved() {
  const { revision, policies = [] } = await must(fleet, "PolicyService/GetPolicies", {});
  const texts = Object.fromEntries(policies.map((p) => [p.name, Buffer.from(p.data, "base64").toString()]));
  return { number: Number(revision?.number ?? 0), texts };
}

// plotted asks for a preview, by a way that is given, until there is a plot: on a
// machine that has much else to do one may take longer than it is allowed.
async function plotted(page, ask) {
  const deadline = Date.now() + 90_000;
  for (;;) {
    const answer = page.waitForResponse((r) => r.url().endsWith("/policies/preview") && r.status() === 200);
    await ask();
    await (await answer).finished();
    const shown = page.locator("#trial .chart__plot, #trial .empty__title").first();
    await shown.waitFor();
    if (await shown.evaluate((e) => e.matches(".chart__plot"))) return;
    assert.ok(Date.now() < deadline, await page.locator("#trial").innerText());
  }
}

const preview = (page) => page.getByRole("button", { name: "Preview", exact: true }).click();
const save = (page) => page.getByRole("button", { name: /^Save as version/ }).click();
const problem = (page) => page.locator("#problem");

test("none yet: the page says how to begin", { timeout: 300_000 }, async () => {
  for (const width of [1440, 375]) {
    const page = await open(browser, fleet.url + "/policies", { width });
    await page.getByText("No policy yet").waitFor();
    quiet(page);
    await shoot(page, `policies-none-${width}-light`);
    await accessible(page);
    await fits(page);
    await page.getByRole("link", { name: "New policy" }).last().click();
    await page.waitForURL(/\/policies\/new$/);
    await page.context().close();
  }
  assert.equal((await saved()).number, 0);
});

test("a new policy in the form: refused with each fault at its field, tried on the past, saved", { timeout: 300_000 }, async () => {
  const page = await open(browser, fleet.url + "/policies/new");
  await page.getByLabel("Name", { exact: true }).first().fill("nightly");
  await page.locator('[id="match.service"]').fill("service-0");
  await page.locator("#floor").fill("ten");
  await page.locator("summary", { hasText: "Cycle, time zone" }).click();
  await page.locator("#cycle").fill("every night");
  await page.locator("#reason").fill("limits from history");
  await save(page);
  await problem(page).getByText("Not saved: 2 fields to correct").waitFor();
  for (const [field, typed] of [["floor", "ten"], ["cycle", "every night"]]) {
    const input = page.locator(`[id="${field}"]`);
    assert.equal(await input.inputValue(), typed, `${field} forgot what was typed`);
    assert.equal(await input.getAttribute("aria-invalid"), "true", field);
    const hint = page.locator(`[id="${field}-error"]`);
    assert.ok(await hint.isVisible(), `what is wrong with ${field} is folded away`);
    assert.ok((await hint.innerText()).length > 10);
  }
  assert.equal(await page.locator("#reason").inputValue(), "limits from history");
  assert.equal((await saved()).number, 0);
  quiet(page, 422);
  await shoot(page, "policies-refused-1440-light");
  await accessible(page);

  // The plot comes while one types, before anything is saved.
  await page.locator("#floor").fill("");
  await plotted(page, () => page.locator("#cycle").fill(""));
  const desc = await page.locator("#trial [role=status]").innerText();
  assert.match(desc, /of the load of [\d.]+ days would have been falsely dropped/);
  assert.equal(await page.locator("#trial .stat", { hasText: "False drops of all" }).count(), 1);
  const drawing = () => page.locator("#trial .chart__plot").first().innerHTML();
  const was = await drawing();
  await plotted(page, () => page.locator("#ceiling").fill("1"));
  await page.waitForFunction((was) => document.querySelector("#trial .chart__plot").innerHTML !== was, was);
  assert.equal((await saved()).number, 0, "a preview saved something");
  await page.locator("#ceiling").fill("");
  await shoot(page, "policies-preview-1440-light");
  await accessible(page);

  await save(page);
  await page.getByText("Saved as version 1 and active").waitFor();
  const { number, texts } = await saved();
  assert.equal(number, 1);
  assert.equal(texts.nightly, "name: nightly\nkind: peak\nmode: propose\nmatch: {service: service-0}\n");
  await page.reload();
  assert.equal((await saved()).number, 1, "a reload saved again");
  assert.match(await page.locator("section", { has: page.locator("#versions") }).innerText(), /limits from history/);
  quiet(page, 422);
  await page.context().close();
});

test("as YAML: refused with line and place, what was typed stays, and its comments are kept", { timeout: 300_000 }, async () => {
  const { number } = await saved();
  const page = await open(browser, fleet.url + "/policies/new?as=yaml", { width: 375 });
  const bad = "name: search\nkind: peek   # of all\nmatch: {service: service-1}\nflor: 3\n";
  await page.getByLabel("Policy as YAML").fill(bad);
  await save(page);
  await problem(page).getByText("Not saved: 2 faults").waitFor();
  const said = await problem(page).innerText();
  assert.match(said, /line 2, kind/);
  assert.match(said, /line 4/);
  assert.equal(await page.getByLabel("Policy as YAML").inputValue(), bad);
  assert.equal((await saved()).number, number);
  quiet(page, 422);
  await shoot(page, "policies-yaml-refused-375-light");
  await accessible(page);
  await fits(page);
  await page.getByLabel("Policy as YAML").fill(bad.replace("peek", "peak").replace("flor", "floor"));
  await plotted(page, () => preview(page));
  await fits(page, "with a preview");
  assert.equal((await saved()).number, number);
  await save(page);
  await page.getByText(`Saved as version ${number + 1} and active`).waitFor();
  assert.equal((await saved()).texts.search, "name: search\nkind: peak   # of all\nmatch: {service: service-1}\nfloor: 3\n");
  quiet(page, 422);
  await page.context().close();
});

test("without scripts: tried on the past, then saved", { timeout: 300_000 }, async () => {
  const { number } = await saved();
  const page = await open(browser, fleet.url + "/policies/show?name=nightly", { scripts: false });
  await page.locator("#ceiling").fill("700");
  await plotted(page, () => preview(page));
  assert.equal(await page.locator("#ceiling").inputValue(), "700");
  assert.match(await page.locator("#trial").innerText(), /with nightly as saved/);
  assert.equal((await saved()).number, number);
  await save(page);
  assert.match(await page.locator("main").innerText(), new RegExp(`Saved as version ${number + 1} and active`));
  assert.match((await saved()).texts.nightly, /^ceiling: 700$/m);
  await page.context().close();
});

test("two people change one policy: nothing is overwritten, both are shown, and it can go on top", { timeout: 300_000 }, async () => {
  const page = await open(browser, fleet.url + "/policies/show?name=nightly");
  const { number, texts } = await saved();
  const theirs = texts.nightly.replace("ceiling: 700", "ceiling: 800");
  await apply(fleet, theirs);
  await page.locator("#max_step").fill("0.1");
  await page.locator("#reason").fill("slower");
  await save(page);
  await problem(page).getByText(`Not saved: version ${number + 1} changed this policy while you were editing`).waitFor();
  assert.deepEqual([await page.locator("#max_step").inputValue(), await page.locator("#reason").inputValue()], ["0.1", "slower"]);
  assert.match(await page.locator(".compare").innerText(), /ceiling: 800[^]*max_step: 0\.1/);
  assert.equal((await saved()).texts.nightly, theirs);
  quiet(page, 409);
  await shoot(page, "policies-conflict-1440-light");
  await accessible(page);
  await page.setViewportSize({ width: 375, height: 900 });
  await fits(page, "both versions on a phone");
  await save(page);
  await page.getByText(`Saved as version ${number + 2} and active`).waitFor();
  assert.match((await saved()).texts.nightly, /^max_step: 0\.1$/m);
  quiet(page, 409);
  await page.context().close();
});

test("versions: what one changed, and back to it", { timeout: 300_000 }, async () => {
  const { number, texts } = await saved();
  const to = number - 3; // when there was no ceiling yet
  const page = await open(browser, fleet.url + "/policies");
  assert.equal(await page.getByRole("region", { name: "Table of versions" }).locator("tbody tr").count(), number);
  await page.getByRole("link", { name: `Difference of version ${to}`, exact: true }).click();
  await page.getByRole("heading", { name: "What rolling back would change" }).waitFor();
  assert.match(await page.locator("section", { has: page.locator("#back") }).innerText(), /max_step: 0\.1/);
  quiet(page);
  await shoot(page, "policies-version-1440-light");
  await accessible(page);

  // Somebody else is faster: nothing is rolled back unseen.
  await apply(fleet, texts.nightly.replace("0.1", "0.3"));
  const roll = page.getByRole("button", { name: `Roll back to version ${to}` });
  await page.getByLabel("Reason").fill("as it was");
  await roll.click();
  await problem(page).getByText(`Not rolled back: version ${number + 1} was made while you were looking`).waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), "as it was");
  assert.match((await saved()).texts.nightly, /^max_step: 0\.3$/m);
  await roll.click();
  await page.getByText(`Saved as version ${number + 2} and active`).waitFor();
  assert.doesNotMatch((await saved()).texts.nightly, /ceiling|max_step/);
  quiet(page, 409);
  await page.context().close();
});

test("deleted: not without a reason, and not what was changed meanwhile", { timeout: 300_000 }, async () => {
  const { number, texts } = await saved();
  const page = await open(browser, fleet.url + "/policies/show?name=search");
  const bin = page.getByRole("form", { name: "Delete" });
  await bin.getByRole("button").click();
  assert.equal(await bin.getByLabel("Reason").evaluate((e) => e.validity.valueMissing), true, "the browser does not ask for a reason");
  await bin.getByLabel("Reason").fill("of no use");
  await apply(fleet, texts.search.replace("floor: 3", "floor: 4"));
  await bin.getByRole("button").click();
  await problem(page).getByText("Not deleted: it was changed while you were looking").waitFor();
  assert.equal(await bin.getByLabel("Reason").inputValue(), "of no use");
  assert.match((await saved()).texts.search, /floor: 4/);
  quiet(page, 409);
  await accessible(page);
  await bin.getByRole("button").click();
  await page.getByText(`Saved as version ${number + 2} and active`).waitFor();
  assert.deepEqual(Object.keys((await saved()).texts), ["nightly"]);
  quiet(page, 409);
  await page.context().close();
});

// What no field takes: words, a number below zero, one beyond all bounds, a text
// that is far too long, what ends the line, and what is not UTF-8.
const nonsense = ["ten thousand", "-1", "1e308", "x".repeat(10_000), "a\nfloor: 1", "{a: b}", "\u0000"];
const fields = [
  "kind", "mode", "match.service", "match.caller", "match.bucket", "history", "cycle", "time_zone", "floor", "ceiling", "round", "max_step", "promote_after",
  "params.second_over_minute", "discover.by", "discover.min_rps", "events[0].name", "events[0].from", "events[0].to", "events[0].factor", "capacity[0].from",
  "capacity[0].rps", "ignore[0].from", "ignore[0].to", "quota[0].rps", "quota[0].regions", "quota[0].from", "quota[0].to",
];
// takes are what a field may well have.
const takes = {
  "match.service": ["1e308"], "match.caller": ["1e308", "-1"], "match.bucket": ["1e308"], "events[0].name": ["ten thousand", "-1", "1e308", "{a: b}"],
};

test("nonsense in any field is refused at the field, and changes nothing", { timeout: 400_000 }, async () => {
  const was = await saved();
  const page = await open(browser, fleet.url + "/policies/show?name=nightly");
  const wrong = [];
  for (const field of fields) {
    for (const typed of nonsense) {
      if (takes[field]?.includes(typed)) continue;
      const what = `${field} ${JSON.stringify(typed.slice(0, 20))}`;
      const answer = await page.evaluate(async ({ field, typed }) => {
        const form = new FormData(document.querySelector("#edit"));
        form.set(field, typed);
        const r = await fetch("/policies/save", { method: "POST", body: new URLSearchParams(form), redirect: "manual" });
        const shown = new DOMParser().parseFromString(await r.text(), "text/html");
        const input = shown.getElementById(field);
        return {
          status: r.status, type: r.type, said: shown.getElementById("problem")?.innerText ?? "",
          error: shown.getElementById(`${field}-error`)?.textContent.trim() ?? "", value: input?.getAttribute("value") ?? "", tag: input?.tagName ?? "",
        };
      }, { field, typed });
      if (answer.status !== 422) wrong.push(`${what}: answered ${answer.status || answer.type}`);
      else if (answer.error === "" && answer.said.length < 20) wrong.push(`${what}: refused without a reason`);
      else if (answer.tag === "INPUT" && answer.value !== typed.trim().replace("\u0000", "\ufffd")) wrong.push(`${what}: not shown again`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(await saved(), was);
  await page.context().close();
});
