// The screenshots of the docs: `scripts/console shots` writes docs/console.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, main, open, settled, test } from "./console";
import { fastmcp, filesystem, everything, memory, own, serving } from "./gateway";
import { connect } from "./mcp";
import { ensemble } from "./setting";

const folder = join(import.meta.dirname, "../../docs/console");
const gateway = serving({
  ...ensemble,
  // A lock wants servers that start.
  config: ensemble.config!.replace(/\[mcp\.broken\]\n.*\n/, ""),
  servers: { everything, fastmcp, memory, files: filesystem("{HOME}"), travel: own("rich"), sums: own("shifty", "{HOME}/later") },
  before: [["lock", "--yes"]],
});

test.use({ viewport: { width: 1280, height: 800 } });

async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  expect(statSync(path).size, `${name} is small`).toBeLessThan(150_000);
}

test("the main pages", async ({ page }) => {
  const client = await connect(gateway);
  for (let round = 0; round < 12; round++) {
    await client.callTool({ name: "get-sum", arguments: { a: round, b: 2 } });
    await client.callTool({ name: "compute", arguments: { steps: 2, milliseconds: 5 } });
    await client.callTool({ name: "work", arguments: { steps: 2, milliseconds: 10 + 7 * round } }, undefined, { onprogress: () => {} });
    if (round % 4 === 0) await client.callTool({ name: "get-sum", arguments: { a: "x" } });
  }

  await open(page, gateway, "servers");
  await settled(page);
  await shot(page, "servers");

  await page.goto(gateway.page("tools/everything.trigger-long-running-operation"));
  await main(page).getByLabel(/^duration/).fill("6");
  await main(page).getByLabel(/^steps/).fill("8");
  await main(page).getByRole("button", { name: "Call", exact: true }).click();
  await expect(main(page).getByRole("progressbar")).toHaveAttribute("aria-valuenow", /[345]/);
  await shot(page, "tools");

  await page.goto(gateway.page("calls"));
  const call = client.callTool({ name: "work", arguments: { steps: 8, milliseconds: 300 } }, undefined, { onprogress: () => {} });
  await expect(main(page).getByRole("progressbar").first()).toBeVisible();
  await shot(page, "calls");
  await call;

  await page.goto(gateway.page("chat"));
  await main(page).getByLabel("Agent").selectOption("careful");
  await main(page).getByLabel("Message").fill("Tidy up my notes, please.");
  await page.keyboard.press("Enter");
  await expect(main(page)).toContainText("old notes");
  await shot(page, "chat");

  gateway.write("later", "");
  await gateway.api("/servers/sums/restart", {});
  await page.goto(gateway.page("pins"));
  await expect(main(page)).toContainText("id_rsa");
  await shot(page, "pins");

  const asked = client.callTool({ name: "delete_entities", arguments: { entityNames: ["old notes"] } }).catch(() => {});
  await page.goto(gateway.page("approvals"));
  await expect(main(page).getByRole("article")).toHaveCount(2);
  await shot(page, "approvals");

  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(gateway.page("tools/travel.plan_trip"));
  await expect(main(page).getByLabel(/^Class/)).toBeVisible();
  await shot(page, "tools-dark");
  await client.close();
  await asked;
});
