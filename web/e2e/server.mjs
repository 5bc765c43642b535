// Starts the server under test: our own with a generated fleet, or whatever
// E2E_COMMAND and E2E_URL say.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const e2e = import.meta.dirname;

// Server is one process that can be stopped and started again at the same URL.
export class Server {
  #command; #url; #dir; #process;

  // start takes people: true for our own server with accounts, of which there is
  // none yet.
  static async start({ people = false } = {}) {
    const s = new Server();
    const { E2E_COMMAND: command, E2E_URL: url } = process.env;
    if (!people && (command || url)) {
      if (!command || !url) throw new Error("set both E2E_COMMAND (a shell command) and E2E_URL (where it answers)");
      s.#command = ["/bin/sh", ["-c", `exec ${command}`]];
      s.#url = url;
    } else {
      s.#dir = mkdtempSync(join(tmpdir(), "grl-e2e-"));
      const binary = join(s.#dir, "server");
      const built = spawnSync("go", ["build", "-o", binary, "./server"], { cwd: e2e, stdio: "inherit" });
      if (built.status !== 0) throw new Error("go build ./server: no binary");
      const port = await freePort();
      s.#command = [binary, ["-listen", `127.0.0.1:${port}`, ...people ? ["-people", join(s.#dir, "store")] : []]];
      s.#url = `http://127.0.0.1:${port}`;
    }
    await s.up();
    // A real controller warms up, with a notice that then goes and moves all
    // that is below it.
    while (!s.generated && !(await fetch(s.#url + "/readyz")).ok) await sleep(50);
    return s;
  }

  get url() { return this.#url; }
  get generated() { return this.#dir !== undefined; }

  get #running() { return this.#process?.exitCode === null && this.#process.signalCode === null; }

  // up starts the process, unless it runs, and returns when it answers.
  async up() {
    if (this.#running) return;
    const [program, args] = this.#command;
    this.#process = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"] });
    const p = this.#process;
    const deadline = Date.now() + 60_000;
    for (;;) {
      if (!this.#running) throw new Error(`server ended with ${p.exitCode ?? p.signalCode}`);
      try {
        if ((await fetch(this.#url)).ok) return;
      } catch { /* not listening yet */ }
      if (Date.now() > deadline) throw new Error(`no answer from ${this.#url} in 60 s`);
      await sleep(50);
    }
  }

  // down kills the process, as a crash would.
  async down() {
    if (!this.#running) return;
    this.#process.kill("SIGKILL");
    await once(this.#process, "exit");
  }

  async close() {
    await this.down();
    if (this.#dir) rmSync(this.#dir, { recursive: true, force: true });
  }
}

async function freePort() {
  const { createServer } = await import("node:net");
  const s = createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  s.close();
  await once(s, "close");
  return port;
}
