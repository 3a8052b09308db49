// The line protocol between a test and the client that it drives, for programs in JavaScript; see serve.py.
import readline from "node:readline";

const carried = ["errorCode", "details", "suggestion", "debugInfo"];

export async function calls(answer) {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  console.log = console.error; // what the client prints is no answer
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { call, args } = JSON.parse(line);
    let reply;
    try {
      reply = { returned: (await answer(call, args)) ?? null };
    } catch (error) {
      const told = { class: error.constructor.name, message: error.message };
      for (const name of carried) if (error[name] !== undefined) told[name] = error[name];
      reply = { raised: told };
    }
    write(JSON.stringify(reply) + "\n");
  }
}
