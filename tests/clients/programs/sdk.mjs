// Drives the JavaScript client: `new` makes one from a host and a key alone; every other call is a method of the newest.
import { createRequire } from "node:module";
import { calls } from "./serve.mjs";

const { MemoryClient } = createRequire(process.env.MODULES)("mem0ai");
let client;

await calls(async (call, args) => {
  if (call === "new") {
    client = new MemoryClient(args[0]);
    await client.initialized;
    return { orgId: client.organizationId, projectId: client.projectId, telemetryId: client.telemetryId };
  }
  if (call === "public") {
    const hidden = /^(_|constructor$)/;
    return Object.getOwnPropertyNames(MemoryClient.prototype).filter((name) => !hidden.test(name));
  }
  return client[call](...args);
});
process.exit(0);
