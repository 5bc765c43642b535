// People of a fleet with accounts: the API as their programs call it, and their
// browsers.
import assert from "node:assert/strict";
import { open } from "./browser.mjs";

export const password = "correct horse battery staple";

// call asks the API, and returns the status and the message of the answer.
export async function call(fleet, method, message = {}, bearer = "") {
  const answer = await fetch(`${fleet.url}/grl.v1.${method}`, {
    method: "POST", body: JSON.stringify(message),
    headers: { "content-type": "application/json", ...bearer && { authorization: `Bearer ${bearer}` } },
  });
  return { status: answer.status, body: await answer.json() };
}

// must is call for what has to succeed, and returns the message alone.
export async function must(fleet, method, message, bearer) {
  const { status, body } = await call(fleet, method, message, bearer);
  assert.equal(status, 200, `${method} ${JSON.stringify(message)}: ${JSON.stringify(body)}`);
  return body;
}

// enroll makes accounts, the first of which is an admin, and returns a session of
// each for the API, by name.
export async function enroll(fleet, accounts) {
  const sessions = {};
  let admin = "";
  for (const account of accounts) {
    await must(fleet, "AccessService/PutAccount", { account, password }, admin);
    sessions[account.name] = (await must(fleet, "AccessService/Login", { account: account.name, password })).session;
    admin ||= sessions[account.name];
  }
  return sessions;
}

// signIn returns a page of somebody who has just signed in, at a path.
export async function signIn(browser, fleet, account, path = "/", options = {}) {
  const page = await open(browser, `${fleet.url}/login?next=${encodeURIComponent(path)}`, options);
  await page.getByRole("textbox", { name: "Account" }).fill(account);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => url.pathname !== "/login");
  return page;
}
