// Who gets in, and what keeps others out.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "@playwright/test";
import { expect, open, test } from "./console";
import { everything, serving } from "./gateway";

const gateway = serving({ servers: { everything } });

test("a wrong token is refused in words, and the right one leads to the page that was asked for", async ({ page, watch }) => {
  watch.allow(/status of 401/);
  await page.goto(gateway.page("tools?q=sum"));
  await page.getByLabel("Token").fill("not-the-token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText("invalid token")).toBeVisible();
  await page.getByLabel("Token").fill(gateway.token);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Tools" })).toBeVisible();
  expect(page.url()).toBe(gateway.page("tools?q=sum"));
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Tools" })).toBeVisible();
});

test("the cookie is out of reach of scripts and of other sites, and holds no token", async ({ page, context }) => {
  await open(page, gateway, "servers");
  const cookies = await context.cookies();
  expect(cookies).toHaveLength(1);
  expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  expect(cookies[0]!.value).not.toContain(gateway.token);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain(gateway.token);
});

test("after logging out the cookie is gone and the login is back", async ({ page, context, watch }) => {
  watch.allow(/status of 401/);
  await open(page, gateway, "servers");
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  expect(await context.cookies()).toEqual([]);
  await page.reload();
  await expect(page.getByLabel("Token")).toBeVisible();
});

/** The headers of a page that is logged in. */
async function credentials(page: Page, context: BrowserContext): Promise<{ cookie: string; secret: string }> {
  const [cookie] = await context.cookies();
  const secret = await page.evaluate(() => sessionStorage.getItem("consort.session") ?? "");
  expect(secret).not.toBe("");
  return { cookie: `${cookie!.name}=${cookie!.value}`, secret };
}

const program = JSON.stringify({ text: JSON.stringify({ intruder: { command: "touch", args: ["intruder"] } }) });

/** Everything that a thief may try, with these headers; the statuses. */
async function tried(headers: Record<string, string>): Promise<number[]> {
  const statuses: number[] = [];
  for (const path of ["session", "servers", "events", "calls", "pending-requests", "openapi.json"]) {
    const answer = await fetch(`${gateway.origin}/api/${path}`, { headers });
    statuses.push(answer.status);
    await answer.body?.cancel();
  }
  for (const path of ["servers", "servers/preview", "servers/everything/restart", "pending-requests/1"]) {
    const answer = await fetch(`${gateway.origin}/api/${path}`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: program });
    statuses.push(answer.status);
  }
  statuses.push((await fetch(`${gateway.origin}/api/session`, { method: "DELETE", headers })).status);
  return statuses;
}

test("the cookie that another port of the host is sent opens nothing there", async ({ page, context }) => {
  await open(page, gateway, "servers");
  const { cookie } = await credentials(page, context);
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
    expect(received, "browsers do not tell ports apart").toBe(cookie);
    for (const origin of [undefined, gateway.origin, elsewhere, "null"]) {
      const statuses = await tried({ cookie: received, ...(origin ? { origin } : {}) });
      expect(statuses.filter((status) => status !== 401 && status !== 403)).toEqual([]);
    }
    // Nor can a page of that port ask in its own name.
    const asked = await other.evaluate(async (origin) => {
      const ask = (method: string, path: string) => fetch(`${origin}/api/${path}`, { method, credentials: "include" }).then((answer) => answer.status, () => "blocked");
      return [await ask("GET", "servers"), await ask("POST", "servers/everything/restart")];
    }, gateway.origin);
    expect(asked).toEqual(["blocked", "blocked"]);
    expect(await other.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
    expect(gateway.read("consort.toml")).not.toContain("intruder");
    // The page itself goes on.
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Tools" }).click();
    await expect(page.getByRole("main")).toContainText("get-sum");
  } finally {
    thief.close();
  }
});

test("what a page sent before it logged out is worth nothing after it", async ({ page, context, watch }) => {
  watch.allow(/status of 401/);
  await open(page, gateway, "servers");
  const { cookie, secret } = await credentials(page, context);
  const headers = { cookie, "x-consort-session": secret, origin: gateway.origin };
  expect((await fetch(`${gateway.origin}/api/servers`, { headers })).status).toBe(200);
  const unproved = await fetch(`${gateway.origin}/api/servers`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: program });
  expect([unproved.status, gateway.read("consort.toml").includes("intruder")], "a program needs the token itself").toEqual([403, false]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  expect(new Set(await tried(headers))).toEqual(new Set([401]));
});

test("a second tab is logged in by the first", async ({ page, context }) => {
  await open(page, gateway, "servers");
  await expect(page.getByRole("main").getByRole("list", { name: "Servers" })).toBeVisible();
  const second = await context.newPage();
  await second.goto(gateway.page("tools"));
  await expect(second.getByRole("main")).toContainText("get-sum");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Tools" }).click();
  await expect(page.getByRole("main")).toContainText("get-sum");
});

test("another site can do nothing with the cookie, and another name of the host nothing at all", async ({ page, context }) => {
  await open(page, gateway, "servers");
  const [cookie] = await context.cookies();
  const headers = { cookie: `${cookie!.name}=${cookie!.value}`, "content-type": "application/json" };
  const restart = (more: Record<string, string>, body = "{}") =>
    page.request.post(`${gateway.origin}/api/servers/everything/restart`, { headers: { ...headers, ...more }, data: body });
  expect((await restart({ origin: "https://evil.invalid" })).status()).toBe(403);
  expect((await restart({ host: "evil.invalid" })).status()).toBe(403);
  expect((await restart({ origin: "null" })).status()).toBe(403);
  // What a form of another page could send without asking first.
  expect((await restart({ "content-type": "text/plain", origin: "https://evil.invalid" })).status()).toBe(403);
  expect((await fetch(`${gateway.origin}/api/servers`)).status).toBe(401);
});

test("pages forbid what they do not need, and are never framed", async ({ page, watch }) => {
  watch.allow(/status of 401/);
  const answer = await page.goto(gateway.page("servers"));
  const headers = answer!.headers();
  const policy = headers["content-security-policy"]!;
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]) {
    expect(policy).toContain(rule);
  }
  expect(policy).not.toContain("unsafe");
  expect(headers["x-content-type-options"]).toBe("nosniff");
  expect(headers["referrer-policy"]).toBe("no-referrer");
  expect(await answer!.text()).not.toContain(gateway.token);
});
