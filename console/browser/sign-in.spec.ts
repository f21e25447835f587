// Users of an OpenID provider at the console: who gets in, what they may do, and what a stolen cookie is worth.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "@playwright/test";
import { expect, main, test } from "./console";
import { everything, Gateway, own } from "./gateway";
import { Issuer } from "./issuer";

const issuer = new Issuer({
  ada: { name: "Ada Admin", groups: ["platform"] },
  mel: { name: "Mel Member", groups: ["everybody"] },
  opal: { name: "Opal Operator", groups: ["everybody"] },
});
let gateway: Gateway;

test.describe.configure({ mode: "serial" });

test.beforeAll(async () => {
  const origin = `http://127.0.0.1:${await freePort()}`;
  await issuer.start(origin);
  gateway = new Gateway({
    servers: { everything, rich: own("rich") },
    config: `
[consort]
public_url = "${origin}"
owner_access = "any"

[consort.issuers.acme]
issuer = "${issuer.url}"
client_id = "consort"
client_secret = "file:issuer-secret"
groups_claim = "groups"
scopes = ["email", "profile", "groups", "offline_access"]

[consort.roles]
admin = ["group:acme/platform"]
operator = ["user:acme/opal@acme.example"]
`,
    files: { "issuer-secret": issuer.secret },
  });
  gateway.origin = origin;
  await gateway.start();
  await gateway.settled();
});

test.afterAll(async () => {
  await gateway?.stop();
  issuer.stop();
});

test.beforeEach(({ watch }) => {
  issuer.fresh = false;
  // Before it is signed in, a page asks whether it is; signing in leads to the issuer and back; a sign-in that ends, also
  // because another replaces it, cuts its connections.
  watch.allow(/net::ERR_(INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|CONNECTION_(RESET|CLOSED))/);
  watch.allow(/status of 401/, new RegExp(`^asked another origin: (${issuer.url}|${gateway.origin})/`), new RegExp(`${issuer.url}/favicon.ico$`));
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Signs in at the issuer, from the gateway's page to sign in. */
async function atIssuer(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Sign in with acme" }).click();
  await page.getByRole("button", { name }).click();
}

/** Signs in at the console. */
async function signIn(page: Page, name: string, path = "servers"): Promise<void> {
  await page.goto(gateway.page(path));
  await page.getByRole("link", { name: "Sign in" }).click();
  await atIssuer(page, name);
}

function fromConsole(page: Page, method: string, path: string): Promise<{ status: number; body: object }> {
  return page.evaluate(async ([method, path]) => {
    const headers = { "X-Consort-Session": sessionStorage.getItem("consort.session")!, "content-type": "application/json" };
    const answer = await fetch(`/api${path}`, { method: method!, headers, body: method === "GET" ? undefined : "{}" });
    return { status: answer.status, body: await answer.json().catch(() => ({})) };
  }, [method, path]);
}

async function cookiesOf(context: BrowserContext): Promise<string> {
  return (await context.cookies(gateway.origin)).map(({ name, value }) => `${name}=${value}`).join("; ");
}

test("an administrator signs in, sees the servers and is offered no change of them", async ({ page, watch }) => {
  watch.allow(/status of 403/);
  await signIn(page, "Ada Admin", "tools?q=sum");
  await expect(page.getByRole("heading", { level: 1, name: "Tools" })).toBeVisible();
  expect(page.url(), "back where the sign-in began, without its proof").toBe(gateway.page("tools?q=sum"));
  const pages = page.getByRole("navigation", { name: "Pages" });
  await expect(pages).toContainText("Ada Admin (admin)");
  await expect(pages.getByRole("link", { name: "Chat" })).toHaveCount(0);
  await pages.getByRole("link", { name: "Servers" }).click();
  await expect(main(page).getByRole("list", { name: "Servers" })).toContainText("everything");
  await expect(page.getByRole("button", { name: "Add servers" })).toHaveCount(0);
  await main(page).getByRole("link", { name: "everything" }).first().click();
  await expect(page.getByText("Changes need the role operator.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Restart" })).toHaveCount(0);
  for (const [method, path] of [["POST", "/servers/everything/restart"], ["POST", "/servers/preview"], ["POST", "/reload"], ["POST", "/pins"]] as const) {
    expect(await fromConsole(page, method, path)).toMatchObject({ status: 403, body: { error: "this needs the role `operator`", link: "/me" } });
  }
  for (const path of ["/conversations", "/agents"]) expect(await fromConsole(page, "GET", path)).toMatchObject({ status: 403, body: { error: "only the owner may do this" } });
  await page.goto(gateway.page("chat"));
  await expect(page.getByText("Only the owner sees conversations")).toBeVisible();
});

test("an administrator reads neither what servers wrote nor what they reported during calls of others", async ({ page }) => {
  const call = await fetch(`${gateway.origin}/api/calls`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.token}`, "content-type": "application/json" },
    body: JSON.stringify({ tool: "rich.work", arguments: { steps: 2, milliseconds: 10 } }),
  });
  const id = /"id":"(c[0-9a-f]+)"/.exec(await call.text())![1];
  type Seen = { timeline: { event: string; detail?: string }[] };
  const details = ({ timeline }: Seen) => timeline.filter(({ event }) => event === "progress").map(({ detail }) => detail);
  const owners = details(await gateway.api<Seen>(`/calls/${id}`));
  expect(owners.filter(Boolean).length).toBeGreaterThan(0);
  await signIn(page, "Ada Admin");
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  const seen = await fromConsole(page, "GET", `/calls/${id}`);
  expect(details(seen.body as Seen)).toEqual(owners.map(() => undefined));
  expect((await fromConsole(page, "GET", "/servers/everything")).body).not.toHaveProperty("stderr");
  expect(await gateway.api("/servers/everything")).toHaveProperty("stderr");
});

test("signing out at the console ends the sign-in too, and signing out there ends the console's session", async ({ page, context }) => {
  await signIn(page, "Ada Admin");
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  const account = await context.newPage();
  await account.goto(`${gateway.origin}/me`);
  await expect(account.getByRole("heading", { name: "Your access" })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("link", { name: "Sign in" })).toBeVisible();
  await account.reload();
  await expect(account.getByRole("button", { name: "Sign in with acme" })).toBeVisible();

  await page.getByRole("link", { name: "Sign in" }).click();
  // The issuer still knows who it is.
  await page.getByRole("button", { name: "Sign in with acme" }).click();
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  await account.goto(`${gateway.origin}/me`);
  await account.getByRole("button", { name: "Sign out", exact: true }).click();
  await expect(page.getByRole("link", { name: "Sign in" })).toBeVisible();
});

test("a member is told what is missing, and finds the page of their own access", async ({ page, watch }) => {
  watch.allow(/status of 403/);
  await signIn(page, "Mel Member");
  await expect(page.getByRole("heading", { name: "You cannot use this console" })).toBeVisible();
  await expect(page.getByText("this needs the role admin")).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.getItem("consort.session"))).toBe(null);
  await page.getByRole("link", { name: "Your access" }).click();
  await expect(page.getByText("Signed in as Mel Member")).toBeVisible();
});

test("an operator signs in again before changing anything", async ({ page, watch }) => {
  watch.allow(/status of 403/);
  await signIn(page, "Opal Operator");
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Add servers" })).toHaveCount(0);
  const refused = await fromConsole(page, "POST", "/servers/everything/restart");
  expect(refused).toMatchObject({ status: 403, body: { error: "this needs a sign-in of the last 10 minutes", link: "/oauth/sign-in?to=console&fresh=1" } });
  issuer.fresh = true;
  await page.getByRole("link", { name: "Sign in again to make changes" }).click();
  await atIssuer(page, "Opal Operator");
  await expect(page.getByRole("navigation", { name: "Pages" })).toContainText("Opal Operator (operator)");
  await page.getByRole("button", { name: "Add servers" }).click();
  await page.getByRole("tab", { name: "Paste an mcp.json" }).click();
  await page.getByRole("textbox", { name: "An mcp.json" }).fill(JSON.stringify({ second: { command: everything[0], args: everything.slice(1) } }));
  await expect(page.getByRole("button", { name: "Add 1 server" })).toBeEnabled();
  await expect(page.getByLabel("Token"), "a recent sign-in stands for it").toHaveCount(0);
  await page.getByRole("button", { name: "Add 1 server" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "second" })).toBeVisible();
  expect(gateway.read("consort.toml")).toContain("[mcp.second]");
});

test("the owner signs in with the token at the same page", async ({ page }) => {
  await page.goto(gateway.page("servers"));
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("Key").fill(gateway.token);
  await page.getByRole("button", { name: "Sign in with a key" }).click();
  await expect(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Chat" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Add servers" })).toBeVisible();
});

test("a page on another port with the stolen cookies can do nothing, nor can a program behind it", async ({ page, context }) => {
  await signIn(page, "Ada Admin");
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  let received = "";
  const thief = createServer((request, answer) => {
    received = request.headers.cookie ?? "";
    answer.setHeader("content-type", "text/html").end("<!doctype html><title>elsewhere</title>");
  });
  await new Promise<void>((resolve) => thief.listen(0, "127.0.0.1", resolve));
  try {
    const elsewhere = `http://127.0.0.1:${(thief.address() as AddressInfo).port}`;
    const other = await context.newPage();
    await other.goto(elsewhere);
    expect(received, "browsers do not tell ports apart").toContain("consort-session-");
    const asked = await other.evaluate(async (origin) => {
      const ask = (method: string, path: string) =>
        fetch(`${origin}/api/${path}`, { method, credentials: "include", headers: method === "POST" ? { "content-type": "application/json" } : {}, body: method === "POST" ? "{}" : null }).then((answer) => answer.status, () => "blocked");
      return [await ask("POST", "session"), await ask("GET", "session"), await ask("GET", "servers"), await ask("DELETE", "session")];
    }, gateway.origin);
    expect(asked).toEqual(["blocked", "blocked", "blocked", "blocked"]);
    // The program behind that page sends what headers it likes.
    const statuses: number[] = [];
    for (const origin of [undefined, gateway.origin, elsewhere, "null"]) {
      for (const proof of [undefined, "1.2", `${Math.floor(Date.now() / 1000)}.${"0".repeat(64)}`]) {
        const headers = { cookie: received, "content-type": "application/json", ...(origin && { origin }), ...(proof && { "x-consort-sign-in": proof }) };
        for (const [method, path] of [["POST", "session"], ["GET", "session"], ["GET", "servers"], ["GET", "events"], ["POST", "servers/everything/restart"]] as const) {
          statuses.push((await fetch(`${gateway.origin}/api/${path}`, { method, headers, body: method === "POST" ? "{}" : undefined })).status);
        }
      }
    }
    expect(statuses.filter((status) => status !== 401 && status !== 403)).toEqual([]);
    // The page itself goes on.
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Tools" }).click();
    await expect(main(page)).toContainText("get-sum");
  } finally {
    thief.close();
  }
});

test("access tokens and keys of users open no route of the admin API and no metrics", async ({ page, context, watch }) => {
  watch.allow(/asked another origin/);
  const back = createServer((_, answer) => answer.end("connected"));
  await new Promise<void>((resolve) => back.listen(0, "127.0.0.1", resolve));
  try {
    const redirect = `http://127.0.0.1:${(back.address() as AddressInfo).port}/callback`;
    const metadata = { client_name: "C", redirect_uris: [redirect] };
    const registered = await fetch(`${gateway.origin}/oauth/register`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(metadata) });
    const { client_id } = (await registered.json()) as { client_id: string };
    const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const request = new URLSearchParams({
      response_type: "code", client_id, redirect_uri: redirect, state: "s",
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", code_challenge_method: "S256", resource: `${gateway.origin}/mcp`,
    });
    await page.goto(`${gateway.origin}/oauth/authorize?${request}`);
    await atIssuer(page, "Opal Operator");
    await page.getByRole("button", { name: "Allow" }).click();
    await expect(page.getByText("connected")).toBeVisible();
    const code = new URL(page.url()).searchParams.get("code")!;
    const exchanged = await fetch(`${gateway.origin}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: redirect, client_id, code_verifier: verifier }),
    });
    const { access_token } = (await exchanged.json()) as { access_token: string };
    await page.goto(`${gateway.origin}/me`);
    await page.getByLabel("Name of a new key").fill("laptop");
    await page.getByRole("button", { name: "Make a key" }).click();
    const key = (await page.locator("code").textContent())!;
    expect([access_token.slice(0, 3), key.slice(0, 3)]).toEqual(["ca_", "ck_"]);
    const described = await gateway.api<{ paths: Record<string, Record<string, unknown>> }>("/openapi.json");
    const routes = Object.entries(described.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => [method.toUpperCase(), path] as const));
    expect(routes.length).toBeGreaterThan(40);
    for (const token of [access_token, key, await cookiesOf(context)]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", origin: gateway.origin };
      const opened: string[] = [];
      for (const [method, path] of [...routes, ["GET", "/metrics"], ["GET", "/api/new"]] as const) {
        const answer = await fetch(gateway.origin + path, { method, headers, body: method === "POST" ? "{}" : undefined });
        if (answer.status !== 401 && answer.status !== 403) opened.push(`${method} ${path}: ${answer.status}`);
      }
      expect(opened).toEqual([]);
    }
    // They are good for what they are for.
    const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } } };
    for (const token of [access_token, key]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json, text/event-stream" };
      expect((await fetch(`${gateway.origin}/mcp`, { method: "POST", headers, body: JSON.stringify(initialize) })).status).toBe(200);
    }
  } finally {
    back.closeAllConnections();
    back.close();
  }
});
