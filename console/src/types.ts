// What the admin API says. All paths are under /api. JSON in and out; errors are `Refusal` with a fitting status
// (400 cannot be read, 401 no session, 403 not yours, 404 nothing there, 409 changed meanwhile, 422 does not fit, 502 the server failed, 503 not now, 504 the server took too long).
// Times are ISO 8601 UTC texts. A key that is `?` is absent when there is nothing to say.

export interface ErrorBody { error: string; hint?: string; link?: string } // link: the page that helps, to sign in or of one's own access
export interface ProblemReport { severity: "error" | "warning" | "info"; message: string; hint?: string }

// ---- session -------------------------------------------------------------------------------------------------
// POST   /api/session  {token}  -> { page_secret?: string } and a cookie (HttpOnly, SameSite=Strict); 401 if the token is wrong
//                                  without a token: the user whom /oauth/sign-in?to=console signed in, with `X-Consort-Sign-In`;
//                                  403 if the user is no administrator
//                                  every other request needs the cookie and the secret, as `X-Consort-Session`
// DELETE /api/session           -> 204, the session is over and the cookie gone
// GET    /api/session           -> SessionReport; 401 without one
export interface SessionReport {
  caller: string;            // who I am, in rules and records
  label?: string;            // the name that a user goes by; unverified
  rights: "owner" | "operator" | "admin";
  account?: string;          // path of the user's own page
  operator_sign_in?: string; // path at which an operator signs in again: the last time is too long ago to change servers
  version: string;           // of consort
  endpoint: string;          // path of the MCP endpoint, e.g. "/mcp"; the page adds its own origin
  protected: boolean;        // a token is needed
  config?: string;           // the config file in use
  can_change: boolean;       // servers can be added and removed here
  adding_needs_token: boolean; // the token has to be entered again to add servers
  change_refusal_reason?: string;          // if not, why
  profiles: string[];        // the names of all profiles
  problems: ProblemReport[];       // of the config and the catalog
  rejected: RejectedChange[];       // changes of files that did not take effect
}
// GET  /api/reload             -> ReloadReport   rejected changes and servers that cannot be used
// POST /api/reload {accept}    -> ReloadReport   reads config, lock and secrets again; with accept, rejected changes take effect
export interface RejectedChange { part: string; reason: string; acceptable: boolean }
export interface UnusableServer { server?: string; reason: string; hint?: string; keeps_last_good: boolean }
export interface ReloadReport { config?: string; changes: string[]; rejected: RejectedChange[]; unusable: UnusableServer[] }

// ---- what happens now ----------------------------------------------------------------------------------------
// GET /api/events -> text/event-stream; `event:` is the name, `data:` its JSON. First everything as it is, then changes.
//   session    SessionReport
//   servers    ServerReport[]        all of them, whenever something about one changes (gathered for 200 ms)
//   catalog    { generation: string }   tools, prompts or resources changed: read them again
//   call       CallReport            a call began, came further or ended; same id, newest state (progress at most 10 a second a call)
//   missed     { events: number }   more calls than could be told: read them again
//   pending    PendingRequest[]   all pending requests, whenever they change
//   conversation { id: string; state: string }   a conversation's run began, waits or ended

// ---- servers -------------------------------------------------------------------------------------------------
// GET    /api/servers                 -> ServerReport[]
// GET    /api/servers/{name}          -> ServerDetail
// POST   /api/servers/{name}/connect | disconnect | restart | disable   -> 204. What is said of it then comes by events.
// POST   /api/servers/preview {text}  -> ServerDraft[]   text is an mcp.json (any of the formats consort reads) or one entry of it; nothing is started
// POST   /api/servers {text, token}   -> { added: string[] }   written into the config file, then connected; 409 if a name is taken
// DELETE /api/servers/{name}          -> 204, taken out of the config file
export type ServerState = "configured" | "known" | "connecting" | "ready" | "needs auth" | "degraded" | "failed" | "disabled";
export interface ServerReport {
  name: string;
  state: ServerState;
  since: string;
  transport: string;   // a name of the config, such as stdio; local: tools of consort itself; cannot be restarted or removed
  era?: "legacy" | "modern";
  revision?: string;          // e.g. "2025-11-25"
  title?: string;             // what it calls itself, with its version; unverified
  error?: string;
  hint?: string;
  restarts: number;
  tools: number; prompts: number; resources: number; templates: number;
  tokens: number;             // what its definitions cost a model
  latencies: number[];        // ms of its last calls, oldest first, at most 60
  calls: number;              // in the last hour
  errors: number;             // of those
}
export interface ServerDetail extends ServerReport {
  command?: string[];         // the exact program and arguments, secrets masked
  cwd?: string;
  url?: string;
  env: string[];        // names only
  headers: string[];          // names only
  stderr?: string;             // its tail
  instructions?: string;      // what the server tells models; unverified
  removable: boolean;
}
export interface ServerDraft {
  name: string;
  transport?: ServerReport["transport"];   // absent if the entry is too broken to tell
  command?: string[]; cwd?: string; url?: string;
  env: string[]; headers: string[];
  problems: ProblemReport[];        // with an error among them it cannot be added
  exists: boolean;            // the name is taken
}

// ---- tools, prompts, resources -------------------------------------------------------------------------------
// GET  /api/tools?q=&server=&limit=&profile=&exposure=   -> ToolRow[]; with q ordered by consort's own search. profile, exposure (individual, per-server,
//                                     search, config): those that a model sees; /api/tools/{id} and POST /api/calls take both too
// GET  /api/tools/{id}                -> ToolDetail    (id is percent-encoded, e.g. everything.echo)
// GET  /api/prompts                   -> PromptRow[]
// POST /api/prompts/{id} {arguments: {[name]: string}} -> { description?: string; messages: { role: string; content: Content }[] }
// GET  /api/resources                 -> ResourceRow[]
// POST /api/resources/read {server, uri} -> { contents: { uri: string; mimeType?: string; text?: string; blob?: string }[] }
// GET  /api/resources/watch?server=&uri=  -> event stream: `watching` {} once it is subscribed, then `updated` {} each time
// POST /api/complete {server, ref: {type:"ref/prompt",name} | {type:"ref/resource",uri}, argument:{name,value}, context?:{arguments}} -> { values: string[]; total?: number; hasMore?: boolean }
export interface ToolHints { read_only?: boolean; destructive?: boolean; idempotent?: boolean; open_world?: boolean }
export type PinState = "agreed" | "changed" | "new" | "withheld" | "unlocked";   // unlocked: there is no lock, or it is a tool of consort itself; withheld: the lock does not have its server
export interface ToolRow {
  id: string;                 // server.tool, as it is called at the server
  name: string;               // as clients see it
  server: string;
  title?: string;
  description?: string;       // at most 300 characters here
  tokens: number;
  annotations: ToolHints;
  pin: PinState;
  hidden: boolean;            // by a rule
  changed: boolean;           // a transform changes it
  findings?: string[];        // suspicious text in its definition: place, reason and excerpt
}
export interface RuleChange { member: string; from?: string; to?: string }
export interface ToolDetail extends ToolRow {
  input_schema: JsonSchema;
  output_schema?: JsonSchema;
  server_name: string;        // what the server calls it
  steps: { rule: string; hides: boolean; changes: RuleChange[] }[];
  policy?: string;            // what the policy says, in words
  difference?: PinDifference;    // what changed since it was agreed to
}
export interface PromptRow { id: string; name: string; server: string; title?: string; description?: string; arguments: { name: string; title?: string; description?: string; required: boolean }[] }
export interface ResourceRow { uri: string; server: string; name: string; title?: string; description?: string; mime?: string; size?: number; template: boolean }
export type JsonSchema = boolean | { [key: string]: unknown };
export type ContentBlock = { type: string; [key: string]: unknown };   // MCP content: text, image, audio, resource_link, resource

// ---- pins ----------------------------------------------------------------------------------------------------
// GET  /api/pins -> PinReport
// POST /api/pins {servers: string[]; digest: string} -> 204; agrees to all differences of these servers; 409 if they are no longer those that were shown
export interface PinReport {
  locked: boolean;            // without a lock everything is on offer, and everything is a difference: new
  file?: string;              // where the lock is, or would be
  digest: string;
  differences: PinDifference[];
  unknown?: { server: string; reason: string }[];   // servers of which nothing is known now; they keep what was agreed to
  problem?: string;           // why the lock's file does not count; the last one stays in force
}
export interface PinDifference {
  server: string;
  kind: string;               // tool, prompt, resource, instructions, launch, server
  name?: string;
  change: "added" | "removed" | "changed";
  lines: { sign: " " | "+" | "-"; text: string }[];   // a readable diff
  warnings: string[];         // what looks like an attack in the new words
}

// ---- calls ---------------------------------------------------------------------------------------------------
// POST /api/calls {tool: string; arguments: object} -> event stream; leaving it cancels the call:
//   started  { id: string }
//   progress { progress: number; total?: number; message?: string }
//   log      { level?: string; logger?: string; data: unknown }
//   request  PendingRequest         answer it by POST /api/pending-requests/{id}
//   end      CallEndReport
// GET /api/calls?limit=&caller=&server=&name=&outcome=&before= -> { calls: CallReport[]; more?: string }   newest first; `more` is the next `before`
// GET /api/calls/{id}       -> CallDetail
// GET /api/stats?minutes=60 -> CallStatistics
export interface CallEndReport {
  ok: boolean;                // it was answered, and not with an error
  result?: { content?: ContentBlock[]; structuredContent?: unknown; isError?: boolean; _meta?: unknown };
  error?: { message: string; hint?: string };
  duration_us: number;
  bytes: number;
}
export interface CallReport {
  id: string;
  time: string;
  caller: string;             // e.g. client:owner
  endpoint: string;              // mcp, console, a profile's name
  server?: string;
  method: string;             // tools/call
  name: string;
  outcome?: string;           // absent while it goes on; ok, tool_error, cancelled, …
  ok?: boolean;
  duration_us?: number;
  bytes_in: number;
  bytes_out?: number;
  progress?: { progress: number; total?: number; message?: string };
  steps: number;              // progress messages so far
}
export interface CallDetail extends CallReport {
  code?: number;
  digest?: string;            // SHA-256 of the arguments
  trace?: string;
  timeline: { at_us: number; event: "queued" | "sent" | "progress" | "log" | "question" | "answer" | "end"; detail?: string }[];   // since its begin; short for calls of long ago
  omitted?: number;          // so many moments in the middle are omitted
}
export interface CallStatistics {
  from: string;
  step_s: number;             // width of a bucket in seconds
  buckets: { calls: number; errors: number; p50_us?: number; p95_us?: number }[];   // oldest first
  servers: CallTotals[];
  tools: CallTotals[];
}
export interface CallTotals { server: string; name?: string; calls: number; errors: number; p50_us: number; p95_us: number; max_us: number }

// ---- pending requests -----------------------------------------------------------------------------------------
// GET  /api/pending-requests      -> PendingRequest[]
// POST /api/pending-requests/{id} ElicitationAnswer -> 204; 404 if it was answered elsewhere or is over; 422 if the answer does not fit
export interface PendingRequest {
  id: string;
  kind: "approval" | "server" | "model" | "sampling";   // approval of a call; server request; question of the model; sampling request
  since: string;
  expires?: string;
  caller: string;
  server?: string;
  tool?: string;
  call?: string;              // in a conversation: the call's id there
  conversation?: string;
  message: string;            // plain text; treat as hostile
  schema?: JsonSchema;        // the form of the answer, flat. For approvals: decision once|session|always|deny, arguments (JSON as text), reason
  url?: string;               // a page the person is asked to open; never opened unasked
}
export interface ElicitationAnswer { action: "accept" | "decline" | "cancel"; content?: { [key: string]: unknown } }

// ---- agents and conversations --------------------------------------------------------------------------------
// GET    /api/agents                         -> AgentListing[]
// GET    /api/conversations                  -> ConversationSummary[]   newest first
// GET    /api/conversations/{id}             -> ConversationDetail
// POST   /api/conversations {agent, text}    -> 201 { id }       begins one and answers
// POST   /api/conversations/{id} {text?, agent?}  -> 202         says more; without text it goes on with what was broken off or waited
// GET    /api/conversations/{id}/events      -> event stream: what happens in the run that is on, from its beginning; ends with it. `idle` {} and end if none is on.
//           names and data are those of the agent's events: started, turn, delta, retry, message, call, progress, log, request (a PendingRequest), result, note, end
// POST   /api/conversations/{id}/stop        -> 204
// POST   /api/conversations/{id}/fork {at?: number} -> 201 { id }   `at`: so many messages are taken over
// DELETE /api/conversations/{id}             -> 204
export interface AgentListing { name: string; description?: string; model: string; profile?: string; tools: number; scripted: boolean; default: boolean }
export interface ConversationSummary { id: string; title: string; created: string; last: string; messages: number; input: number; output: number; state: string; running: boolean }
export interface ConversationDetail extends ConversationSummary { agent?: string; entries: MessageRow[]; pending: PendingRequest[]; report?: RunReport }   // While `running`, entries end where the run's events begin (with what it answers): entries + events are all, and nothing twice. After `over` or `idle` read it again.
export interface MessageRow { role: "system" | "user" | "assistant" | "tool"; parts: MessagePart[] }
export type MessagePart =
  | { type: "text" | "refusal" | "thinking"; text: string }
  | { type: "call"; id: string; name: string; arguments: unknown }
  | { type: "result"; call: string; name?: string; is_error: boolean; parts: MessagePart[] }
  | { type: "image" | "audio"; mime: string; data: string }
  | { type: "other"; text: string };
// what the events of a run carry
export type AnswerChunk = { type: "text" | "thinking" | "refusal"; text: string } | { type: "other" };
export interface RunReport { status: string; reason?: string; hint?: string; text: string; turns: number; calls: number; failed: number; input: number; output: number; cost?: number; duration_ms: number }
export interface RunEvents {
  started: { model: string; tools: number };
  turn: { turn: number };
  delta: AnswerChunk;
  retry: { error: string; after_ms: number };
  message: { message: MessageRow };
  call: { call: string; name: string; tool: string; arguments: unknown };
  progress: { call: string; progress: number; total?: number; message?: string };
  log: { call: string; level?: string; data: unknown };
  request: PendingRequest;
  result: { call: string; parts: MessagePart[]; is_error: boolean; error?: string; duration_ms: number };
  note: { text: string };
  end: RunReport;
}

// ---- profiles, connect ---------------------------------------------------------------------------------------
// GET /api/profiles -> ProfileReport[]     the first, without a name, is everything
// GET /api/connect?profile= -> ConnectGuide
export interface ProfileReport { name?: string; path: string; tools: number; exposures: { exposure: string; tools: number; tokens: number; chosen: boolean }[] }
export interface ConnectGuide { path: string; token_file?: string; clients: { id: string; name: string; file?: string; snippet: string }[] }   // in snippets: ORIGIN for the page's origin, TOKEN for the token
