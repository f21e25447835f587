// Live calls: what a real client does, as it does it.
import type { Locator, Page } from "@playwright/test";
import { expect, main, open, record, recorded, test } from "./console";
import { serving } from "./gateway";
import { type Client, connect } from "./mcp";
import { ensemble } from "./setting";

const gateway = serving(ensemble);
let client: Client;
test.beforeAll(async () => {
  client = await connect(gateway);
});
test.afterAll(() => client.close());

function rows(page: Page, tool: string): Locator {
  return main(page).getByRole("list", { name: "Calls" }).getByRole("listitem").filter({ has: page.getByRole("link", { name: tool, exact: true }) });
}

test("a client's call appears while it runs, comes further, and ends", async ({ page }) => {
  await record(page);
  await open(page, gateway, "calls");
  await expect(main(page).getByRole("status").filter({ hasText: "live" })).toBeVisible();
  const call = client.callTool({ name: "trigger-long-running-operation", arguments: { duration: 4, steps: 8 } }, undefined, { onprogress: () => {} });
  const row = rows(page, "trigger-long-running-operation").first();
  await expect(row).toContainText("running");
  await expect(row).toContainText("by mcp");
  await call;
  await expect(row).toContainText("ok");
  await recorded(page);
  await expect(row).toContainText(/\d s/);
});

test("a call opens as a timeline, with sizes and times", async ({ page }) => {
  await client.callTool({ name: "work", arguments: { steps: 3, milliseconds: 50 } }, undefined, { onprogress: () => {} });
  await open(page, gateway, "calls");
  await rows(page, "work").first().getByRole("link").click();
  await expect(page).toHaveURL(/calls\/.+/);
  const moments = main(page).getByRole("list", { name: "Events" });
  for (const what of ["queued", "sent to the server", "progress", "ended"]) await expect(moments).toContainText(what);
  const facts = main(page).getByRole("region", { name: "Facts" });
  await expect(facts).toContainText(/\d+ B of arguments, \d+ B of result/);
  await expect(facts).toContainText(/Duration\s*\d+ ms/);
});

test("calls are filtered by server, tool and outcome, and the address keeps it", async ({ page }) => {
  await client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } });
  await client.callTool({ name: "get-sum", arguments: { a: "no number", b: 2 } }).catch(() => {});
  await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
  await open(page, gateway, "calls?server=fastmcp");
  await expect(rows(page, "add").first()).toBeVisible();
  await expect(rows(page, "get-sum")).toHaveCount(0);
  await main(page).getByLabel("Server").fill("everything");
  await expect(page).toHaveURL(/server=everything/);
  await expect(rows(page, "get-sum")).toHaveCount(2);
  await main(page).getByLabel("Outcome").fill("ok");
  await expect(page).toHaveURL(/outcome=ok/);
  await expect(rows(page, "get-sum")).toHaveCount(1);
  await page.reload();
  await expect(rows(page, "get-sum")).toHaveCount(1);
  await main(page).getByRole("button", { name: "Clear" }).click();
  await expect(rows(page, "add").first()).toBeVisible();
});

test("rates, errors and times are drawn, and told by server and by tool", async ({ page }) => {
  await client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } });
  await open(page, gateway, "calls");
  await expect(main(page).getByRole("img", { name: /^Calls .*: [1-9]\d* calls?/ })).toBeVisible();
  await expect(main(page).getByRole("img", { name: /^Latency: p95 at most/ })).toBeVisible();
  await main(page).getByRole("tab", { name: "By server" }).click();
  await expect(main(page).getByRole("table", { name: "By server" }).getByRole("row").filter({ hasText: "everything" })).toContainText(/ms/);
  await main(page).getByRole("tab", { name: "By tool" }).click();
  await expect(main(page).getByRole("table", { name: "By tool" })).toContainText("everything.get-sum");
});
