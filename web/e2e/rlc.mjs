// Policies and runs of a fleet, as a program asks for them.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "./people.mjs";

// nightly computes the limits of the seeded services. Their history ends with the
// last whole hour, and they are offered nothing since: that does not teach.
export const nightly = `name: nightly
kind: peak
match: {service: service*}
ignore:
  - {from: "${hour(-1)}", to: "${hour(24)}", reason: the history ends}
`;

// agreed computes the limit of the bucket that the fleet's callers pass.
export const agreed = (rps) => `name: agreed
kind: quota
match: {service: payments, bucket: checkout-charge}
quota:
  - {rps: ${rps}}
`;

// hour returns a whole hour from now on, as a policy has it.
function hour(from) {
  return new Date(Math.floor(Date.now() / 3_600_000 + from) * 3_600_000).toISOString().replace(".000Z", "Z");
}

// apply makes texts policies, as somebody else would, and returns the number of
// the revision.
export async function apply(fleet, ...texts) {
  const { outcome } = await must(fleet, "PolicyService/ApplyPolicies", {
    files: texts.map((text, i) => ({ name: `policy-${i}.yaml`, data: Buffer.from(text).toString("base64") })), reason: "limits from history",
  });
  return Number(outcome.revision.number);
}

// computed waits until the policies of a revision were run, and returns the number
// of the run.
export async function computed(fleet, revision) {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const { runs = [] } = await must(fleet, "RLCService/ListRuns", {});
    const run = runs.find((r) => Number(r.policyRevision) === revision && r.state !== "STATE_RUNNING");
    if (run) {
      assert.equal(run.state, "STATE_DONE", run.error);
      return Number(run.id);
    }
    assert.ok(Date.now() < deadline, "no run is over after 2 min");
    await sleep(100);
  }
}
