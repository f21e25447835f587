// A server with arguments of every kind, and one that logs while it works: no third-party server has these in one form.
import { notify, serve } from "./stdio.mjs";

const trip = {
  type: "object",
  required: ["traveller", "stops"],
  properties: {
    traveller: {
      type: "object",
      title: "Traveller",
      required: ["name"],
      properties: {
        name: { type: "string", title: "Name", minLength: 2, description: "As in the passport" },
        age: { type: "integer", title: "Age", minimum: 0, maximum: 130 },
        contact: {
          title: "Contact",
          oneOf: [
            { title: "By mail", type: "object", required: ["email"], properties: { email: { type: "string", format: "email", title: "Email" } } },
            { title: "By phone", type: "object", required: ["phone"], properties: { phone: { type: "string", pattern: "^[+0-9 ]+$", title: "Phone" } } },
          ],
        },
      },
    },
    stops: {
      type: "array",
      title: "Stops",
      minItems: 1,
      items: {
        type: "object",
        required: ["city"],
        properties: {
          city: { type: "string", title: "City", enum: ["Oslo", "Bergen", "Tromsø"] },
          nights: { type: "integer", title: "Nights", minimum: 1, default: 2 },
        },
      },
    },
    class: { type: "string", title: "Class", enum: ["economy", "comfort"], default: "economy" },
    notify: { type: "boolean", title: "Notify", default: true },
    tags: { type: "array", title: "Tags", items: { type: "string" } },
    budget: { type: "number", title: "Budget", exclusiveMinimum: 0 },
  },
};

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
  });

let count = 0;
const calls = {
  plan_trip: ({ arguments: plan }) => ({ content: [{ type: "text", text: JSON.stringify(plan) }], structuredContent: plan }),
  work: async ({ arguments: { steps = 3, milliseconds = 200 } = {}, _meta }, signal) => {
    for (let step = 1; step <= steps && !signal.aborted; step++) {
      await pause(milliseconds, signal);
      if (signal.aborted) break;
      notify("notifications/message", { level: "info", logger: "work", data: `log line ${step}` });
      if (_meta?.progressToken !== undefined) {
        notify("notifications/progress", { progressToken: _meta.progressToken, progress: step, total: steps, message: `step ${step}` });
      }
    }
    return { content: [{ type: "text", text: `# Done\n\nAfter **${steps}** steps.\n\n| step | took |\n|---|---|\n| 1 | ${milliseconds} ms |` }] };
  },
  count_up: () => {
    count++;
    notify("notifications/resources/updated", { uri: "rich://count" });
    return { content: [{ type: "text", text: `the count is ${count}` }] };
  },
};

serve({
  name: "rich",
  title: "Rich forms",
  instructions: "Plan trips here.",
  capabilities: { tools: {}, logging: {}, resources: { subscribe: true } },
  methods: {
    "tools/list": () => ({
      tools: [
        { name: "plan_trip", title: "Plan a trip", description: "Plans a trip with several stops.", inputSchema: trip, outputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
        { name: "work", title: "Work for a while", description: "Works, and says how far it is.", inputSchema: { type: "object", properties: { steps: { type: "integer", title: "Steps", default: 3 }, milliseconds: { type: "integer", title: "Milliseconds", default: 200 } } } },
        { name: "count_up", title: "Count up", description: "Changes the resource `rich://count`.", inputSchema: { type: "object" } },
      ],
    }),
    "tools/call": (params, signal) => calls[params.name](params, signal),
    "resources/list": () => ({ resources: [{ uri: "rich://count", name: "count", title: "A count", mimeType: "text/plain" }] }),
    "resources/templates/list": () => ({ resourceTemplates: [] }),
    "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: `count: ${count}` }] }),
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
  },
});
