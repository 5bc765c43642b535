// Who is shown what, and who may do what, by roles as docs/access.md has them: an
// admin, an editor of the service payments, an editor of what team-search owns,
// and a viewer, at a real fleet.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Fleet } from "./fleet.mjs";
import { launch, quiet } from "./browser.mjs";
import { call, enroll, must, password, signIn } from "./people.mjs";
import { paths, routes } from "./routes.mjs";

// services are those that somebody here may change: a bucket that each has, and
// another limit for it, which no guard rail minds.
const services = { payments: { bucket: "everything", limit: "4321" }, search: { bucket: "all", limit: "900" } };

let fleet, browser, sessions, root, run, caps;

before(async () => {
  fleet = await Fleet.start({ buckets: 60, history: 5 });
  sessions = await enroll(fleet, [
    { name: "root", role: "ACCOUNT_ROLE_ADMIN" },
    { name: "payer", role: "ACCOUNT_ROLE_EDITOR", services: ["payments"] },
    { name: "finder", role: "ACCOUNT_ROLE_EDITOR", owners: ["team-search"] },
    { name: "looker", role: "ACCOUNT_ROLE_VIEWER" },
  ]);
  root = (method, message) => must(fleet, method, message, sessions.root);
  await prepare();
  browser = await launch();
}, { timeout: 300_000 });
after(async () => {
  await browser?.close();
  await fleet?.close();
});

// policy is one that has a proposal for each bucket of a service.
function policy(service, rps) {
  return `name: agreed-${service}\nkind: quota\nmode: propose\nmatch: {service: ${service}}\nquota:\n  - {rps: ${rps}}\n`;
}

// prepare has something of each service for every form to be about: a policy, a
// proposal, a cap, a change to roll back; and one that drops nothing.
async function prepare() {
  const files = Object.keys(services).map((s) => ({ name: `${s}.yaml`, data: Buffer.from(policy(s, 700)).toString("base64") }));
  await root("PolicyService/ApplyPolicies", { files, reason: "agreed" });
  caps = {};
  for (const service of Object.keys(services)) {
    const { cap } = await root("IncidentService/PlaceCap", { service, caller: "price-bot", rps: 400, durationMs: "3600000", reason: "for the test" });
    caps[service] = cap.cap.id;
  }
  await root("IncidentService/Disable", { service: "search", reason: "for the test" });
  await root("RLCService/RequestRun", {});
  run = await ran("0");
}

// newest returns the newest run, or undefined.
async function newest() {
  return (await root("RLCService/ListRuns", {})).runs?.[0];
}

// ran waits until a run after one is finished, and returns it: what was proposed
// before can be superseded by it.
async function ran(after) {
  for (;;) { // the test's own time bounds this
    const run = await newest();
    if (run && run.id !== after && run.state !== "STATE_RUNNING") return run;
    await sleep(100);
  }
}

// controls are what main shows to change something: where its buttons post to,
// what its regions post while one types, and the links to pages that are forms.
// everyone: to viewers too; editor: to each editor; payments and search: to
// editors of that service; admin: to admins alone.
const controls = {
  "/": {},
  "/headroom": {},
  "/buckets": { editor: ["/bucket/new"] },
  "/bucket?name=payments/everything": { payments: ["/bucket", "/bucket/effect", "/caps?"] },
  "/bucket?name=payments/writes": { payments: ["/bucket", "/bucket/effect", "/bucket/promote", "/caps?"] },
  "/bucket?name=search/all": { search: ["/bucket", "/bucket/effect", "/caps?"] },
  "/bucket/zoom?name=payments/writes": {},
  "/shadow?q=payments": { payments: ["/shadow/promote", "/shadow/chosen"] },
  "/explain?service=payments&caller=checkout&procedure=POST+/charges": { payments: ["/caps?"] },
  "/caps": {
    editor: ["/caps", "/caps/effect", "/caps/disable"],
    payments: ["/caps/lift", "/caps/extend", "/caps?", "/bucket/new?"], search: ["/caps/lift", "/caps/extend", "/caps?", "/bucket/new?", "/caps/enable"],
  },
  "/policies": { editor: ["/policies/new"] },
  "/policies/show?name=agreed-payments": { payments: ["/policies/new", "/policies/save", "/policies/preview", "/policies/delete"] },
  "/policies/show?name=agreed-search": { search: ["/policies/new", "/policies/save", "/policies/preview", "/policies/delete"] },
  "/policies/version?number=1": {},
  "/rlc": { editor: ["/rlc/request"] },
  "/rlc/run?id=1": { payments: ["/rlc/decide"], search: ["/rlc/decide"] },
  "/fleet": {},
  "/alerts": { editor: ["/alerts?"] },
  "/changes": { admin: ["/changes/rollback?"] }, // all that is there was of several services
  "/access": { everyone: ["/account/tokens", "/account/sessions/end"], admin: ["/access/account", "/access/account?"] },
};

// forms are pages that only who may send them comes to; others are answered 403.
const forms = {
  "/bucket/new?service=payments": ["payer", "finder", "root"],
  "/bucket/preview?name=payments/everything&limit=4000&behavior=deny": ["payer", "root"],
  "/bucket/new/preview?service=payments&bucket=more&caller=one&scope=global&limit=9&behavior=allow": ["payer", "finder", "root"],
  "/caps/preview?service=payments&caller=web&rps=5": ["payer", "finder", "root"],
  "/policies/new": ["payer", "finder", "root"],
  "/shadow/promote?bucket=payments/writes": ["payer", "root"],
  "/access/account": ["root"],
  "/access/account?name=looker": ["root"],
};

const people = { root: ["everyone", "editor", "payments", "search", "admin"], payer: ["everyone", "editor", "payments"], finder: ["everyone", "editor", "search"], looker: ["everyone"] };

// shown is what a page has of controls.
function shown() {
  const formPages = ["/bucket/new", "/shadow/promote", "/changes/rollback", "/rlc/rollback", "/policies/new", "/access/account"];
  const asks = ["/caps", "/alerts", ...formPages]; // with a query they lead to a form that is filled in
  const found = new Set();
  for (const b of document.querySelectorAll("main button, main input[type=submit]")) {
    if (b.form && (b.formMethod || b.form.method) === "post") found.add(new URL(b.hasAttribute("formaction") ? b.formAction : b.form.action).pathname);
  }
  for (const e of document.querySelectorAll("main [hx-post]")) found.add(e.getAttribute("hx-post"));
  for (const a of document.querySelectorAll("main a[href]")) {
    const to = new URL(a.href);
    if (to.hash && to.pathname + to.search === location.pathname + location.search) continue;
    if (to.search && asks.includes(to.pathname)) found.add(`${to.pathname}?`);
    else if (formPages.includes(to.pathname)) found.add(to.pathname);
  }
  return [...found].sort();
}

for (const [who, groups] of Object.entries(people)) {
  test(`${who} is shown what ${who} may do`, { timeout: 600_000 }, async () => {
    // The server says it all: without scripts each page is there at once.
    const page = await signIn(browser, fleet, who, "/fleet", { scripts: false });
    try {
      for (const [path, of] of Object.entries(controls)) {
        const answer = await page.goto(fleet.url + path);
        assert.equal(answer.status(), 200, `${path}: everyone reads everything`);
        const want = [...new Set(groups.flatMap((g) => of[g] ?? []))].sort();
        assert.deepEqual(await page.evaluate(shown), want, `${who} on ${path}`);
      }
      for (const [path, may] of Object.entries(forms)) {
        assert.equal((await page.goto(fleet.url + path)).status(), may.includes(who) ? 200 : 403, `${who} on ${path}`);
        if (!may.includes(who)) assert.deepEqual(await page.evaluate(shown), [], `${who} on ${path}`);
      }
      quiet(page, 403);
    } finally {
      await page.context().close();
    }
  });

  test(`${who} is shown the rows that ${who} may decide`, { timeout: 600_000 }, async () => {
    const page = await signIn(browser, fleet, who, "/fleet", { scripts: false });
    const values = (path, what) => page.goto(fleet.url + path).then(() => page.locator(what).evaluateAll((all) => all.map((e) => e.value)));
    const own = Object.keys(services).filter((s) => groups.includes(s));
    try {
      assert.deepEqual((await values("/caps", "button[form=lift]")).sort(), own.map((s) => caps[s]).sort(), "caps that can be lifted");
      const ticks = await values(`/rlc/run?id=${run.id}`, "input[type=checkbox][name=bucket]");
      assert.deepEqual([...new Set(ticks.map((b) => b.split("/")[0]))].sort(), own, "services whose proposals can be ticked");
      assert.deepEqual(await values("/shadow?q=payments", "input[type=checkbox][name=bucket]").then((all) => all.length > 0), own.includes("payments"), "limits that can be promoted");
    } finally {
      await page.context().close();
    }
  });
}

// regions are what pages ask for while they are looked at, and downloads: who is
// signed in gets them, and for a form the ones who may send it.
const regions = [
  "/account", "/events", "/caps/events", "/alerts/rules", "/bucket/callers?name=payments/everything", "/bucket/chart?name=payments/everything",
  "/bucket/now?name=payments/everything", "/bucket/saved?name=payments/everything&revision=1", "/bucket/series.csv?name=payments/everything",
  "/bucket/series.json?name=payments/everything", "/bucket/zones?name=payments/everything", "/changes/export", "/changes/newer?after=1",
  "/fleet/configurator", "/fleet/now", "/policies/buckets?name=agreed-payments", "/policies/trial?name=agreed-payments", "/shadow/promoted?revision=1",
];
const previews = {
  "/bucket/effect": { name: "payments/everything", base: "1", limit: "4000", behavior: "deny" },
  "/bucket/new/effect": { service: "payments", bucket: "more", scope: "global", limit: "9", behavior: "allow" },
  "/caps/effect": { service: "payments", caller: "web", rps: "5" },
  "/policies/preview": { was: "agreed-payments", as: "yaml", text: policy("payments", 900), base: "1" },
};

// open are the routes by which one comes and goes, and how pages look.
const open = ["GET /login", "GET /first", "POST /login", "POST /first", "POST /logout"];
const looks = ["POST /theme", "POST /keys"];

// get asks for a page as a person, or as nobody, and leaves what it says unread.
async function get(who, path) {
  const answer = await fetch(fleet.url + path, { redirect: "manual", headers: who ? { cookie: `grl=${sessions[who]}` } : {} });
  const { status, headers } = answer;
  await answer.body?.cancel();
  return { status, to: headers.get("location") ?? "" };
}

test("each route has a row here", () => {
  const own = ["/account/tokens", "/account/tokens/revoke", "/account/sessions/end", "/shadow/chosen"];
  const back = ["/changes/rollback", "/rlc/rollback"];
  const rows = new Set([
    ...[...Object.keys(controls), ...Object.keys(forms), ...regions, ...back].map((p) => `GET ${p.split("?")[0]}`),
    ...[...acts.map((a) => a.path), ...others.map((o) => o.path), ...Object.keys(previews), ...own, ...back, "/policies/rollback"].map((p) => `POST ${p}`),
    ...open, ...looks, "GET /oidc/start", "GET /oidc/callback",
  ]);
  assert.deepEqual(routes.filter((r) => !rows.has(r)), [], "who may come to these?");
  assert.deepEqual([...rows].filter((r) => !routes.includes(r)), [], "these are no more");
});

test("regions are for everyone who is signed in, previews for those who may send the form", { timeout: 600_000 }, async () => {
  const before = await state();
  for (const path of regions) {
    const want = { "/account": 303, "/shadow/promoted?revision=1": 404 }[path] ?? 200; // it leads on; nothing was promoted by r1
    for (const who of Object.keys(people)) assert.ok([want, 204].includes((await get(who, path)).status), `${who}: GET ${path}`);
  }
  for (const [path, fields] of Object.entries(previews)) {
    for (const who of ["root", "payer"]) assert.equal((await post(who, path, fields)).status, 200, `${who}: POST ${path}`);
    assert.equal((await post("looker", path, fields)).status, 403, `looker: POST ${path}`);
  }
  assert.deepEqual(await state(), before);
});

test("who is not signed in comes to the login, and changes nothing", { timeout: 600_000 }, async () => {
  const before = await state();
  for (const path of [...Object.keys(controls), ...Object.keys(forms), ...regions, "/changes/rollback", "/rlc/rollback"]) {
    const { status, to } = await get("", path);
    assert.deepEqual([status, /^\/login(\?next=|$)/.test(to)], [303, true], `GET ${path} leads to ${to}`);
  }
  for (const path of paths("POST").filter((p) => !open.includes(`POST ${p}`))) {
    assert.equal((await post("", path, { reason: "by nobody" })).status, 401, `POST ${path}`);
  }
  const first = await post("", "/first", { token: "guessed", name: "mallory", password: "a password of mallory" });
  assert.ok(first.status >= 400 && first.status < 500, `POST /first: ${first.status}`);
  assert.deepEqual(await state(), before);
});

// state is all that the forms could change; what merely goes on is left out.
async function state() {
  const names = (of) => of?.map(({ usedAtMs, ...rest }) => rest);
  const [revisions, running, policies, accounts, tokens, open, result, audit, tree] = await Promise.all([
    root("ConfigService/ListRevisions", {}), root("IncidentService/ListCaps", {}), root("PolicyService/ListPolicyRevisions", {}),
    root("AccessService/ListAccounts", {}), root("AccessService/ListTokens", {}), root("AccessService/ListSessions", {}),
    root("RLCService/GetRun", { id: run.id }), root("AuditService/ListAudit", {}), root("ViewService/GetFleet", {}),
  ]);
  return {
    revision: revisions.revisions[0].number, policies: policies.revisions[0].number,
    caps: running.caps?.map((c) => [c.cap.id, c.endsAtMs]), accounts: accounts.accounts, tokens: names(tokens.tokens), sessions: names(open.sessions),
    proposals: result.results.map((r) => [r.bucket, r.state]), mutes: audit.entries.filter((e) => e.action.startsWith("alert.")).map((e) => e.number), off: [tree.disabledServices, tree.allDisabled],
  };
}

// post sends a form as a browser does whose page somebody wrote by hand.
async function post(who, path, fields) {
  const answer = await fetch(fleet.url + path, {
    method: "POST", redirect: "manual", body: new URLSearchParams(fields),
    headers: who ? { cookie: `grl=${sessions[who]}` } : {},
  });
  return { status: answer.status, to: answer.headers.get("location") ?? "", text: await answer.text() };
}

// acts are one of each form about a service: its path, and the fields; fresh:
// with the present revision. The order is that of a story.
const acts = [
  { path: "/bucket/new", fields: (s) => ({ service: s, bucket: "quiet", caller: "nobody", scope: "global", limit: "9", behavior: "allow", reason: "new" }) },
  { path: "/bucket/promote", fields: (s) => ({ name: `${s}/quiet`, reason: "promoted" }) },
  { path: "/shadow/promote", fields: async (s) => ({ bucket: await shadowOf(s), reason: "promoted", do: "promote" }), fresh: true },
  { path: "/bucket", fields: (s) => ({ name: `${s}/${services[s].bucket}`, limit: services[s].limit, behavior: "deny", reason: "edited" }), fresh: true },
  { path: "/bucket/rollback", fields: async (s) => ({ name: `${s}/${services[s].bucket}`, revision: await editOf(s) }) },
  { path: "/caps", fields: (s) => ({ service: s, caller: "nobody", rps: "5", for: "1h", reason: "placed" }) },
  { path: "/caps/extend", fields: async (s) => ({ cap: await capOf(s, true), by: "30m" }) },
  { path: "/caps/lift", fields: async (s) => ({ cap: await capOf(s) }) },
  { path: "/caps/enable", fields: async (s) => (await root("IncidentService/Disable", { service: s, reason: "to be enabled" }), { off: s }) },
  { path: "/caps/disable", fields: (s) => ({ off: s, why: "stopped" }) },
  { path: "/rlc/decide", fields: (s) => ({ id: run.id, tab: "all", bucket: `${s}/${services[s].bucket}`, do: "reject", reason: "no" }) },
  { path: "/rlc/request", fields: (s) => ({ service: s }) },
  { path: "/policies/save", fields: (s) => ({ was: `agreed-${s}`, as: "yaml", text: policy(s, 800), reason: "more" }), policies: true },
  { path: "/policies/delete", fields: (s) => ({ name: `agreed-${s}`, reason: "gone" }), policies: true },
];

// shadowOf makes a bucket of a service in shadow, and returns its name when it can be
// promoted.
async function shadowOf(service) {
  const form = { service, bucket: "several", caller: "no-one", scope: "global", limit: "9", behavior: "allow", reason: "new" };
  assert.equal((await post("root", "/bucket/new", form)).status, 303);
  const name = `${service}/several`;
  while ((await get("root", `/shadow/promote?bucket=${name}`)).status === 404) await sleep(50); // the test's own time bounds this
  return name;
}

// capOf returns the cap of nobody at a service, as forms name it.
async function capOf(service, withEnd = false) {
  const { caps: all } = await root("IncidentService/ListCaps", {});
  const c = all.find((c) => c.cap.service === service && c.cap.match.caller === "nobody");
  return c ? c.cap.id + (withEnd ? ` ${c.endsAtMs}` : "") : "none";
}

// editOf returns the revision by which the limit of a service was edited.
async function editOf(service) {
  const { entries } = await root("AuditService/ListAudit", {});
  return entries.find((e) => e.action === "apply" && e.reason === "edited" && e.actor === (service === "payments" ? "payer" : "finder")).revision;
}

// said is what a page says first: why something was refused, or all of it.
function said(html) {
  const part = html.match(/role="alert"[^]*?<\/div>/)?.[0] ?? html.match(/<main[^]*<\/main>/)?.[0] ?? html;
  return part.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").slice(0, 300);
}

for (const { path, fields, fresh, policies } of acts) {
  test(`POST ${path}: own services only, and nothing changes else`, { timeout: 600_000 }, async () => {
    for (const [service, own, other] of [["payments", "payer", "finder"], ["search", "finder", "payer"]]) {
      const about = await fields(service);
      const before = await state();
      const base = policies ? before.policies : before.revision;
      const form = { ...about, ...fresh || policies ? { base } : {} };
      for (const who of ["looker", other]) {
        const { status, text } = await post(who, path, form);
        assert.equal(status, 403, `${who} on ${service}: ${said(text)}`);
        assert.match(said(text), who === "looker" ? /You can look, not change/ : /may not|not allowed|editors? of|no right|own/i);
      }
      assert.deepEqual(await state(), before, `${path} of ${service} by those who may not changed something`);
      const last = await newest();
      const { status, to, text } = await post(own, path, form);
      assert.equal(status, 303, `${own} on ${service}: ${said(text)}`);
      assert.ok(to.startsWith("/"), to);
      if (path === "/rlc/request") await ran(last.id);
      else assert.ok(!isDeepStrictEqual(await state(), before), `${path} of ${service} by ${own} changed nothing`);
    }
  });
}

// Of what concerns no single service: who may, beside those that stand for it.
const others = [
  { path: "/alerts/mute", fields: { rule: "over_limit", subject: "payments/checkout-charge", duration: "15", reason: "known" }, may: ["payer", "finder", "root"] },
  { path: "/alerts/mute", fields: { rule: "over_limit", subject: "payments/checkout-charge", end: "yes", reason: "over" }, may: ["payer", "finder", "root"], undone: true },
  { path: "/caps/disable", fields: { all: "yes", why: "everything" }, may: ["root"] },
  { path: "/caps/enable", fields: { all: "yes" }, may: ["root"] },
  { path: "/rlc/request", fields: {}, may: ["root"], runs: true },
  { path: "/policies/save", fields: { as: "yaml", text: "name: all\nkind: peak\nmatch: {service: \"*\"}\n", reason: "all" }, may: ["root"], based: true },
  { path: "/fleet/rollout", fields: { reason: "go on" }, may: [] }, // nothing is on its way
  { path: "/access/account", fields: { new: "yes", name: "mallory", role: "viewer", password: "a password of mallory" }, may: ["root"] },
  { path: "/access/account", fields: { name: "mallory", role: "admin" }, may: ["root"] },
  { path: "/access/account/delete", fields: { name: "mallory", sure: "yes" }, may: ["root"] },
];

test("POST of what is everyone's or an admin's: nothing changes by others", { timeout: 600_000 }, async () => {
  for (const { path, fields, may, runs, based, undone } of others) {
    const before = await state();
    const form = { ...fields, ...based && { base: before.policies } };
    for (const who of Object.keys(people).filter((p) => !may.includes(p) && p !== "root")) {
      const { status } = await post(who, path, form);
      assert.equal(status, 403, `${who}: POST ${path}`);
    }
    assert.deepEqual(await state(), before, `POST ${path} by those who may not changed something`);
    for (const who of undone ? may.slice(0, 1) : may) {
      const last = await newest();
      assert.equal((await post(who, path, form)).status, 303, `${who}: POST ${path}`);
      if (runs) await ran(last.id);
      else assert.ok(!isDeepStrictEqual(await state(), before), `POST ${path} by ${who} changed nothing`);
    }
  }
});

test("a roll back of another service's change, or of all policies, is refused", { timeout: 600_000 }, async () => {
  const edit = { name: "search/all", base: (await state()).revision, limit: "1234", behavior: "deny", reason: "to be rolled back" };
  assert.equal((await post("finder", "/bucket", edit)).status, 303);
  const before = await state();
  const { entries } = await root("AuditService/ListAudit", { pageSize: 1 });
  const form = { entry: entries[0].number, seen: before.revision, reason: "back" };
  assert.equal(entries[0].action, "apply");
  for (const who of ["looker", "payer"]) {
    assert.equal((await get(who, `/changes/rollback?entry=${form.entry}`)).status, 403, `${who} sees the form`);
    assert.equal((await get(who, `/rlc/rollback?id=${run.id}`)).status, 403, `${who} sees the form for all since a run`);
    assert.equal((await post(who, "/changes/rollback", form)).status, 403, who);
    assert.equal((await post(who, "/policies/rollback", { number: "1", base: before.policies, reason: "back" })).status, 403, `${who}: policies`);
    assert.equal((await post(who, "/rlc/rollback", { id: run.id, seen: before.revision, reason: "back" })).status, 403, `${who}: all since a run`);
  }
  assert.deepEqual(await state(), before);
  assert.equal((await get("finder", `/changes/rollback?entry=${form.entry}`)).status, 200);
  assert.equal((await post("finder", "/changes/rollback", form)).status, 303);
});

test("a viewer's own forms reach nobody else's tokens and sessions", { timeout: 600_000 }, async () => {
  const { token } = await root("AccessService/CreateToken", { name: "root's", role: "ACCOUNT_ROLE_VIEWER" });
  const before = await state();
  const ofRoot = before.sessions.find((s) => s.account === "root").id;
  for (const who of ["looker", "payer"]) {
    for (const [path, fields] of [
      ["/account/tokens/revoke", { id: token.id }], ["/account/sessions/end", { id: ofRoot }], ["/account/sessions/end", { account: "root" }],
      ["/account/tokens", { name: "more", role: "admin", days: "1" }], ["/account/tokens", { name: "more", role: "nothing", days: "1" }],
    ]) {
      const { status } = await post(who, path, fields);
      assert.ok(status === 403 || status === 404 || status === 422 || fields.account, `${who}: POST ${path} ${JSON.stringify(fields)}: ${status}`);
    }
  }
  assert.deepEqual(await state(), before);
});

test("a token made in the browser works at the API as far as its role goes, until it is revoked", { timeout: 600_000 }, async () => {
  const page = await signIn(browser, fleet, "payer", "/access");
  try {
    await page.getByLabel("What it is for").fill("a pipeline");
    await page.getByLabel("What it may do").selectOption("viewer");
    await page.getByRole("button", { name: "Make a token" }).click();
    const secret = await page.locator("#secret").innerText();
    assert.equal((await must(fleet, "AccessService/WhoAmI", {}, secret)).by, "token");
    assert.ok((await must(fleet, "ViewService/ListBuckets", {}, secret)).buckets.length > 0);
    const cap = { service: "payments", caller: "nobody", rps: 5, durationMs: "60000", reason: "by a token" };
    assert.equal((await call(fleet, "IncidentService/PlaceCap", cap, secret)).status, 403, "a viewer's token placed a cap");
    assert.equal((await fetch(`${fleet.url}/buckets`, { headers: { authorization: `Bearer ${secret}` }, redirect: "manual" })).status, 200);
    await page.goto(`${fleet.url}/access`);
    assert.doesNotMatch(await page.content(), new RegExp(secret), "it is shown again");
    await page.getByRole("button", { name: "Revoke a pipeline" }).click();
    await page.getByText("The token is revoked").waitFor();
    assert.equal((await call(fleet, "ViewService/ListBuckets", {}, secret)).status, 401, "it works on");
    quiet(page);
  } finally {
    await page.context().close();
  }
});

test("a session ends at once: on another device, by an admin, with its account, and by a new password", { timeout: 600_000 }, async () => {
  await root("AccessService/PutAccount", { account: { name: "guest", role: "ACCOUNT_ROLE_VIEWER" }, password });
  const opened = [];
  const device = async (who, path = "/fleet") => {
    const page = await signIn(browser, fleet, who, path, { scripts: false });
    opened.push(page.context());
    return page;
  };
  const out = async (page, why) => {
    await page.goto(`${fleet.url}/fleet`);
    assert.equal(new URL(page.url()).pathname, "/login", why);
  };
  const inside = async (page, why) => {
    await page.goto(`${fleet.url}/fleet`);
    assert.equal(new URL(page.url()).pathname, "/fleet", why);
  };
  try {
    const [here, there, admin] = [await device("guest", "/access"), await device("guest"), await device("root", "/access")];
    const rows = here.getByRole("region", { name: "Table of sessions" }).getByRole("row");
    await here.reload();
    await rows.filter({ hasNot: here.getByText("this one") }).getByRole("button", { name: /^End the session/ }).click();
    await here.getByText("The session is ended").waitFor();
    await out(there, "ended on another device");
    await inside(here, "its own");

    const again = await device("guest");
    await admin.goto(`${fleet.url}/access`);
    await admin.getByRole("button", { name: "End sessions of guest" }).click();
    await admin.getByText("All sessions of the account are ended").waitFor();
    await out(here, "ended by an admin");
    await out(again, "ended by an admin, too");

    const before = await device("guest");
    await root("AccessService/PutAccount", { account: { name: "guest", role: "ACCOUNT_ROLE_VIEWER" }, password: `${password} 2` });
    await out(before, "the password is another one");
    await root("AccessService/PutAccount", { account: { name: "guest", role: "ACCOUNT_ROLE_EDITOR", services: ["payments"] }, password });

    // Less of a role counts at once, in the middle of a form.
    const editor = await device("guest", "/bucket?name=payments/everything");
    await root("AccessService/PutAccount", { account: { name: "guest", role: "ACCOUNT_ROLE_VIEWER" } });
    const revision = (await state()).revision;
    await editor.locator("input[name=limit]").fill("4000");
    await editor.getByRole("button", { name: /^Save/ }).click();
    await editor.getByText("You can look, not change").first().waitFor();
    assert.equal((await state()).revision, revision);

    await admin.goto(`${fleet.url}/access/account?name=guest`);
    await admin.getByRole("checkbox", { name: /^Yes, delete/ }).check();
    await admin.getByRole("button", { name: "Delete the account" }).click();
    await admin.getByText("The account is deleted").waitFor();
    await out(editor, "the account is deleted");
    await editor.getByRole("textbox", { name: "Account" }).fill("guest");
    await editor.getByLabel("Password", { exact: true }).fill(password);
    await editor.getByRole("button", { name: "Sign in" }).click();
    assert.match(await editor.getByRole("alert").innerText(), /Account or password is wrong/);

    const leaves = await device("looker");
    const cookies = await leaves.context().cookies();
    await leaves.getByRole("button", { name: "Sign out" }).first().click();
    await leaves.context().addCookies(cookies); // whoever kept them has nothing
    await out(leaves, "signed out");
  } finally {
    for (const context of opened) await context.close();
  }
});
