// The ensemble that most tests play on: third-party servers, a policy, profiles and agents.
import { everything, fastmcp, memory, own, type Setting } from "./gateway";

/** A model's script, as a file of the home. */
export function script(turns: unknown[]): string {
  return JSON.stringify({ turns });
}

const config = `
[mcp.broken]
command = ["sh", "-c", "echo 'cannot open the vault: no key' >&2; exit 3"]

[[consort.transforms]]
tools = "everything.echo"
name = "repeat"
description = "Says it again."
arguments.message = { name = "words", description = "What to say again" }

[consort.profiles.numbers]
tools = ["everything.get-sum", "fastmcp.add"]

[consort.profiles.small]
exposure = "search"

[consort.agents.worker]
model = "scripted:worker.json"
description = "Works in steps."

[consort.agents.asker]
model = "scripted:asker.json"
description = "Has a tool that asks."

[consort.agents.careful]
model = "scripted:careful.json"
description = "Does nothing without being allowed to."

[[consort.policy.rules]]
name = "deleting is asked about"
tools = ["memory.delete_*"]
then = "ask"
reason = "it cannot be undone"
`;

export const ensemble: Setting = {
  servers: { everything, fastmcp, memory, rich: own("rich") },
  config,
  files: {
    "worker.json": script([
      { text: "I will work on it, step by step.", calls: [{ name: "work", arguments: { steps: 5, milliseconds: 400 } }], pause_ms: 20 },
      { text: "All **five** steps are done.", pause_ms: 20, usage: { input: 40, output: 6 } },
      { text: "There is nothing more to do." },
    ]),
    "asker.json": script([
      { text: "Let me ask.", calls: [{ name: "ask", arguments: {} }] },
      { text: "Thank you." },
    ]),
    "careful.json": script([
      { text: "I will tidy up.", calls: [{ name: "delete_entities", arguments: { entityNames: ["old notes"] } }] },
      { text: "That is settled." },
    ]),
  },
};
