// The routes of the dashboard, as the sources of the packages of pages declare
// them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const web = join(import.meta.dirname, "..");

// routes are all that the pages serve: "GET /caps".
export const routes = readdirSync(web, { withFileTypes: true }).filter((d) => d.isDirectory()).flatMap(({ name }) => {
  const files = readdirSync(join(web, name)).filter((f) => f.endsWith(".go") && !f.endsWith("_test.go"));
  return files.flatMap((f) => [...readFileSync(join(web, name, f), "utf8").matchAll(/Pattern: "((?:GET|POST) [^"]+)"/g)].map((m) => m[1].replace("{$}", "")));
});

// paths are those of a method, but for what only leads to a provider of accounts.
export const paths = (method) => routes.filter((r) => r.startsWith(`${method} `)).map((r) => r.slice(method.length + 1)).filter((p) => !p.startsWith("/oidc/"));
