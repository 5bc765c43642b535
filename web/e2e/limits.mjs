// What tests of changes ask the product itself, past its pages: the limits that
// are kept, by the API, and what the sidecars answer.
import assert from "node:assert/strict";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

// call asks the API, and returns the message of the answer.
export async function call(fleet, method, message = {}) {
  const answer = await fetch(`${fleet.url}/grl.v1.${method}`, {
    method: "POST", body: JSON.stringify(message), headers: { "content-type": "application/json" },
  });
  const body = await answer.json();
  assert.equal(answer.status, 200, `${method} ${JSON.stringify(message)}: ${JSON.stringify(body)}`);
  return body;
}

// head is the number of the present revision.
export async function head(fleet) {
  return Number((await call(fleet, "ConfigService/ListRevisions", { pageSize: 1 })).revisions[0].number);
}

// text is a bucket as a limits file has it, "" if there is none.
export async function text(fleet, bucket) {
  const [service, name] = bucket.split("/");
  const { files = [] } = await call(fleet, "ConfigService/GetConfiguration", { service });
  const file = files.map((f) => Buffer.from(f.data, "base64").toString()).join("");
  const item = file.split(/^ {2}- /m).find((b) => b.startsWith(`name: ${name}\n`));
  return item ? item.split(/\n(?=\w)/)[0].trim() : "";
}

// address is the page of a bucket.
export function address(fleet, bucket) {
  return `${fleet.url}/bucket?${new URLSearchParams({ name: bucket })}`;
}

// post sends a form as a browser does, and follows nothing.
export function post(fleet, path, form) {
  return fetch(fleet.url + path, {
    method: "POST", body: new URLSearchParams(form), redirect: "manual",
    headers: { origin: fleet.url, "sec-fetch-site": "same-origin" },
  });
}

// until returns what f returns, as soon as that is something.
export async function until(what, f, within = 20_000) {
  for (const start = Date.now(); ;) {
    const got = await f();
    if (got) return got;
    assert.ok(Date.now() - start < within, `not in ${within / 1000} s: ${what}`);
    await sleep(5); // a request through a sidecar is no event that one can wait for
  }
}

// answer sends one request through a sidecar, and returns what a caller gets.
export function answer(fleet, zone, { caller, method, path }) {
  return new Promise((done, fail) => {
    const r = request(fleet.sidecar(zone) + path, { method, headers: { "rpc-caller": caller } }, (a) => {
      let body = "";
      a.on("data", (part) => { body += part; });
      a.on("end", () => done({ status: a.statusCode, body }));
    });
    r.on("error", fail);
    r.end();
  });
}

// dropped returns the refusal of a request at a sidecar, as soon as there is one;
// within a second a caller is dropped at times that is over its limit at all.
export function dropped(fleet, zone, caller) {
  return until(`${zone} drops ${caller.caller}`, async () => {
    const { status, body } = await answer(fleet, zone, caller);
    return status === 429 && JSON.parse(body);
  });
}

// admitted returns once a sidecar admits nearly all of a caller's requests. It asks
// no more than five times a second: what it asks is load too.
export async function admitted(fleet, zone, caller) {
  const last = [];
  await until(`${zone} admits 17 of 20 requests of ${caller.caller}`, async () => {
    last.push((await answer(fleet, zone, caller)).status);
    await sleep(200);
    return last.slice(-20).filter((status) => status === 200).length >= 17;
  }, 60_000);
}
