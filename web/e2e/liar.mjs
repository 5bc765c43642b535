// A node that says what nobody checks: it joins a controller as an aggregator of
// a zone of its own, and reports hosts and callers of any names, in the protocol
// of the tree as JSON.
import { connect } from "node:http2";
import { once } from "node:events";

const end = 2; // flag of the last message of a stream

export class Liar {
  #session; #stream; #timer; #sequence = 0; #cells; #nodes;
  ended = ""; // why the controller ended the stream; "": it did not

  // join says hello and begins to report; it returns when the controller answers.
  // cells are named {bucket, caller}; nodes are as Node of the protocol has them.
  static async join(url, { node, version, zone, region, cells = [], nodes = [], refused = "" }) {
    const l = new Liar();
    l.#session = connect(url);
    l.#session.on("error", (e) => { l.ended ||= String(e); });
    l.#stream = l.#session.request({
      ":method": "POST", ":path": "/grl.v1.TreeService/Join",
      "content-type": "application/connect+json", "connect-protocol-version": "1",
    });
    l.#stream.on("error", (e) => { l.ended ||= String(e); });
    l.#cells = cells;
    l.#nodes = nodes;
    let waiting = Buffer.alloc(0);
    l.#stream.on("data", (chunk) => {
      waiting = Buffer.concat([waiting, chunk]);
      while (waiting.length >= 5 && waiting.length >= 5 + waiting.readUInt32BE(1)) {
        const length = waiting.readUInt32BE(1);
        if (waiting[0] & end) l.ended ||= waiting.subarray(5, 5 + length).toString();
        waiting = waiting.subarray(5 + length);
      }
    });
    l.#say({ hello: { role: "ROLE_AGGREGATOR", node, version, zone, region, bootId: "7", allServices: true } });
    l.#report(refused);
    l.#timer = setInterval(() => l.#report(refused), 500);
    await once(l.#stream, "data");
    return l;
  }

  #say(message) {
    const data = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(data.length, 1);
    this.#stream.write(Buffer.concat([head, data]));
  }

  // #report says 3 rps of each cell, by one host.
  #report(refused) {
    const each = (value) => this.#cells.map(() => value);
    this.#sequence++;
    this.#say({
      report: {
        sequence: String(this.#sequence), refusedRevision: refused && "999999", refusedReason: refused,
        names: this.#sequence === 1 ? this.#cells : [], cell: this.#cells.map((_, i) => i),
        offeredMicroRps: each("3000000"), hosts: each("1"), offered: each(String(this.#sequence * 2)),
        nodes: this.#nodes,
      },
    });
  }

  close() {
    clearInterval(this.#timer);
    this.#session.destroy();
  }
}
