// A real fleet for the browser tests: the grl binary as controller, configurator,
// aggregators of two zones and sidecars, weeks of history behind it, and callers
// that send requests through the sidecars.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { createServer as createListener } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const root = join(import.meta.dirname, "..", "..");

// payments has a bucket over its limit, one with a candidate, one in shadow and
// one that is never near.
const payments = `service: payments
owner: team-payments
buckets:
  - name: checkout-charge
    match: {caller: checkout, procedure: "POST /charges"}
    limit: {rps: 20}
    behavior: deny
  - name: each-caller
    match: {caller: "*"}
    per: caller
    limit: {rps: 25}
    behavior: allow
  - name: writes
    match: {procedure: "POST /charges"}
    limit: {rps: 500}
    candidate: {rps: 40}
    behavior: deny
  - name: everything
    limit: {rps: 5000}
    behavior: deny
routes:
  - POST /charges
  - GET /charges/{id}
`;

const search = `service: search
owner: team-search
buckets:
  - name: per-zone
    match: {caller: web}
    scope: zone
    limit: {rps: 300}
    behavior: deny
  - name: all
    limit: {rps: 1000}
    behavior: deny
`;

// traffic is what each sidecar is sent, in requests a second.
const traffic = [
  { caller: "checkout", method: "POST", path: "/charges", rps: 30 },
  { caller: "web", method: "GET", path: "/charges/7", rps: 20 },
  { caller: "price-bot", method: "POST", path: "/charges", rps: 15 },
];

// Fleet is what runs. start builds the binary, seeds the history and returns when
// the sidecars hold a directive.
export class Fleet {
  #dir; #binary; #processes = new Map(); #upstream; #senders = []; #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  #ports = {};

  static async start({ accounts = false, sidecars = true, buckets = 400, history = 40 } = {}) {
    const f = new Fleet();
    f.#dir = mkdtempSync(join(tmpdir(), "grl-e2e-"));
    f.#binary = join(f.#dir, "grl");
    build(f.#binary, ".");
    for (const name of ["controller", "aggregator", "configurator", "far", "admin-eu", "in-eu", "admin-us", "in-us", "out-eu", "out-us"]) {
      f.#ports[name] = await freePort();
    }
    const limits = join(f.#dir, "limits");
    mkdirSync(limits);
    if (sidecars) {
      run("go", ["run", "./web/e2e/seed", "-db", join(f.#dir, "db"), "-limits", limits, "-buckets", String(buckets),
        "-history", String(history), "-weeks", "5", "-seed", "1", "-hostile"]);
      writeFileSync(join(limits, "payments.yaml"), payments);
      writeFileSync(join(limits, "search.yaml"), search);
    }
    if (sidecars) {
      f.#upstream = createServer((_, answer) => answer.end("ok\n")).listen(0, "127.0.0.1");
      await once(f.#upstream, "listening");
    }
    f.#define(limits, sidecars);
    for (const name of f.#processes.keys()) f.up(name);
    await f.ready(accounts);
    if (sidecars) await f.#send();
    return f;
  }

  get url() { return `http://127.0.0.1:${this.#ports.controller}`; }
  get binary() { return this.#binary; }
  get dir() { return this.#dir; }

  // sidecar returns the address of one, by zone.
  sidecar(zone) { return `http://127.0.0.1:${this.#ports[zone === "eu-1" ? "in-eu" : "in-us"]}`; }

  #define(limits, sidecars) {
    const at = (name) => `127.0.0.1:${this.#ports[name]}`;
    const define = (name, args) => this.#processes.set(name, { args: ["serve", ...args, "--log.level", "error"] });
    define("controller", ["--role", sidecars ? "controller,aggregator,configurator" : "controller",
      "--controller.listen", at("controller"), "--controller.db", join(this.#dir, "db"),
      "--controller.public_url", this.url,
      ...sidecars ? ["--controller.limits", limits, "--controller.region", "eu",
        "--aggregator.listen", at("aggregator"), "--aggregator.zone", "eu-1", "--aggregator.region", "eu",
        "--aggregator.controllers", this.url,
        "--configurator.listen", at("configurator"), "--configurator.controller", this.url] : []]);
    if (!sidecars) return;
    define("far", ["--role", "aggregator", "--aggregator.listen", at("far"), "--aggregator.zone", "us-1",
      "--aggregator.region", "us", "--aggregator.controllers", this.url]);
    const upstream = `http://127.0.0.1:${this.#upstream.address().port}`;
    for (const [zone, region, aggregator] of [["eu-1", "eu", "aggregator"], ["us-1", "us", "far"]]) {
      define(`sidecar-${region}`, ["--role", "client", "--client.service", "payments", "--client.zone", zone, "--client.region", region,
        "--client.aggregators", `http://${at(aggregator)}`, "--client.upstream", upstream, "--client.listen", at(`in-${region}`),
        "--client.outbound_listen", at(`out-${region}`), "--client.admin", at(`admin-${region}`), "--client.switch_file", join(this.#dir, `off-${region}`)]);
    }
  }

  // up starts a process, unless it runs.
  up(name) {
    const p = this.#processes.get(name);
    if (p.child && p.child.exitCode === null && p.child.signalCode === null) return;
    p.child = spawn(this.#binary, p.args, { stdio: ["ignore", "inherit", "inherit"], cwd: this.#dir });
  }

  // down kills a process, as a crash would.
  async down(name) {
    const { child } = this.#processes.get(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  // ready returns when the controller has heard all zones.
  async ready() {
    const deadline = Date.now() + 60_000;
    for (;;) {
      try {
        if ((await fetch(`${this.url}/readyz`)).ok) return;
      } catch { /* not listening yet */ }
      const { child } = this.#processes.get("controller");
      if (child.exitCode !== null) throw new Error(`the controller ended with ${child.exitCode}`);
      if (Date.now() > deadline) throw new Error(`no answer from ${this.url} in 60 s`);
      await sleep(50);
    }
  }

  // #send begins to send, and returns when something is dropped.
  async #send() {
    for (const zone of ["eu-1", "us-1"]) {
      for (const t of traffic) this.#senders.push(every(1000 / t.rps, () => this.ask(zone, t)));
    }
    const deadline = Date.now() + 60_000;
    while (await this.ask("eu-1", traffic[0]) !== 429) {
      if (Date.now() > deadline) throw new Error("nothing is dropped after 60 s of twice the limit");
      await sleep(20);
    }
  }

  // ask sends one request through a sidecar, and returns its status; 0: none.
  ask(zone, { caller, method, path }) {
    return new Promise((done) => {
      const r = request(this.sidecar(zone) + path, { agent: this.#agent, method, headers: { "rpc-caller": caller } }, (answer) => {
        answer.resume();
        answer.on("end", () => done(answer.statusCode));
      });
      r.on("error", () => done(0));
      r.end();
    });
  }

  async close() {
    for (const stop of this.#senders) stop();
    for (const name of this.#processes.keys()) await this.down(name);
    this.#agent.destroy();
    this.#upstream?.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

// build compiles a program of the repository.
function build(to, path) { run("go", ["build", "-o", to, path]); }

function run(program, args) {
  const done = spawnSync(program, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (done.status !== 0) throw new Error(`${program} ${args.join(" ")}: ${done.status ?? done.error}`);
}

// every calls f about every so many milliseconds, never to catch up: what a
// machine is too slow for is not sent.
function every(ms, f) {
  const timer = setInterval(f, ms);
  return () => clearInterval(timer);
}

async function freePort() {
  const l = createListener().listen(0, "127.0.0.1");
  await once(l, "listening");
  const { port } = l.address();
  l.close();
  await once(l, "close");
  return port;
}
