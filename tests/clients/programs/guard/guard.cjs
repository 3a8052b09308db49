// Keep a client on this machine: node loads this first. A connection to anywhere but loopback is refused, and noted in
// the file that STRANGERS names.
const fs = require("node:fs");
const net = require("node:net");

const here = new Set(["localhost", "127.0.0.1", "::1"]);
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...given) {
  const [first] = Array.isArray(given[0]) ? given[0] : given;
  const host = typeof first === "object" && first !== null ? first.host : typeof given[1] === "string" ? given[1] : undefined;
  const local = typeof first === "object" && first !== null && first.path;
  if (!local && host !== undefined && !here.has(host)) {
    fs.appendFileSync(process.env.STRANGERS, `${host}\n`);
    throw new Error(`the tests refuse a connection to ${host}`);
  }
  return connect.apply(this, given);
};
