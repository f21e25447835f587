// A server with thousands of tools, as a company with many systems has them. `many.mjs 5000` has so many.
import { serve } from "./stdio.mjs";

const verbs = {
  list: "Lists", get: "Gets", create: "Creates", update: "Updates", delete: "Deletes", search: "Searches",
  export: "Exports", archive: "Archives", restore: "Restores", count: "Counts", validate: "Validates", assign: "Assigns",
};
const things = [
  "invoice", "customer", "shipment", "ticket", "contract", "employee", "warehouse", "payment", "campaign", "supplier",
  "project", "milestone", "repository", "pipeline", "incident", "certificate", "subscription", "refund", "booking", "vehicle",
  "sensor", "recipe", "patient", "course", "lesson", "exam", "budget", "ledger_entry", "mailbox", "calendar_event", "device", "licence",
];
const ways = ["", "_by_id", "_in_region", "_for_team", "_since", "_in_bulk", "_with_history", "_as_draft", "_for_review", "_across_tenants", "_by_label", "_by_owner", "_in_quarter", "_from_template"];
const parameters = {
  id: { type: "string", description: "Which one, by its id" },
  region: { type: "string", enum: ["eu-north", "eu-west", "us-east", "ap-south"], description: "Where it is kept" },
  team: { type: "string", description: "Whose it is" },
  since: { type: "string", format: "date-time", description: "Only what changed after this" },
  limit: { type: "integer", minimum: 1, maximum: 500, default: 50, description: "How many at most" },
  labels: { type: "array", items: { type: "string" }, description: "Only with all of these" },
  filter: { type: "object", properties: { field: { type: "string" }, value: { type: "string" } }, description: "What must hold" },
  dry_run: { type: "boolean", default: false, description: "Only say what would happen" },
};

function tool(number) {
  const verb = Object.keys(verbs)[number % 12];
  const thing = things[Math.floor(number / 12) % things.length];
  const way = ways[Math.floor(number / (12 * things.length)) % ways.length];
  const names = Object.keys(parameters).filter((_, place) => (number * 31 + place * 17) % 5 < 3);
  return {
    name: `${verb}_${thing}${way}`,
    title: `${verb} ${thing}${way}`.replaceAll("_", " "),
    description: `${verbs[verb]} ${thing.replaceAll("_", " ")} records${way.replaceAll("_", " ")} of system ${number % 23}. Answers with what is known of each, newest first.`,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, parameters[name]])),
      required: names.slice(0, 1),
    },
    annotations: { readOnlyHint: ["list", "get", "search", "count", "validate", "export"].includes(verb), destructiveHint: verb === "delete" },
  };
}

const count = Number(process.argv[2] ?? 5000);
const tools = Array.from({ length: count }, (_, number) => tool(number));

serve({
  name: "many",
  title: "Company systems",
  capabilities: { tools: {} },
  methods: {
    "tools/list": () => ({ tools }),
    "tools/call": ({ name }) => ({ content: [{ type: "text", text: `${name} is done` }] }),
  },
});
