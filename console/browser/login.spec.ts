// Who gets in, and what keeps others out.
import { expect, open, test } from "./console";
import { everything, serving } from "./gateway";

const gateway = serving({ servers: { everything } });

test("a wrong token is refused in words, and the right one leads to the page that was asked for", async ({ page, watch }) => {
  watch.allow(/status of 401/);
  await page.goto(gateway.page("tools?q=sum"));
  await page.getByLabel("Token").fill("not-the-token");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("this is not the gateway's token")).toBeVisible();
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
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  expect(await context.cookies()).toEqual([]);
  await page.reload();
  await expect(page.getByLabel("Token")).toBeVisible();
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
