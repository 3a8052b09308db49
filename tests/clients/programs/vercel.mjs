// Drives the memory provider of Vercel's AI SDK. `generate` and `stream` run a model through it; the model itself is here:
// it answers "Noted." and what it was shown is told to the test.
import { createRequire } from "node:module";
import { calls } from "./serve.mjs";

const provider = createRequire(process.env.MODULES)("@mem0/vercel-ai-provider");
let seen;

function completion(streamed) {
  const about = { id: "c-1", created: 1, model: "a-model" };
  if (!streamed) {
    const choice = { index: 0, message: { role: "assistant", content: "Noted." }, finish_reason: "stop" };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return Response.json({ ...about, object: "chat.completion", choices: [choice], usage });
  }
  const chunk = (delta, reason) =>
    `data: ${JSON.stringify({ ...about, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  const body = chunk({ role: "assistant", content: "Noted." }, null) + chunk({}, "stop") + "data: [DONE]\n\n";
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

function model(settings) {
  const answered = async (_, request) => {
    seen = request.body;
    return completion(JSON.parse(request.body).stream);
  };
  const { mem0ApiKey, ...mem0Config } = settings;
  const made = provider.createMem0({
    provider: "openai", apiKey: "none", mem0ApiKey, mem0Config, config: { fetch: answered },
  });
  return made.chat("a-model", settings);
}

async function generate(prompt, settings) {
  const result = await model(settings).doGenerate({ prompt });
  return { seen, text: result.content.filter((part) => part.type === "text").map((part) => part.text).join("") };
}

async function stream(prompt, settings) {
  const result = await model(settings).doStream({ prompt });
  let text = "";
  for await (const part of result.stream) if (part.type === "text-delta") text += part.delta ?? part.textDelta;
  return { seen, text };
}

const ours = { generate, stream };
await calls(async (call, [given, settings]) => (ours[call] ?? provider[call])(given, settings));
process.exit(0);
