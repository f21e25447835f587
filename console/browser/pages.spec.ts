// Every page, light and dark, wide and narrow.
import type { Page } from "@playwright/test";
import axe from "axe-core";
import { expect, open, settled, test } from "./console";
import { serving } from "./gateway";
import { connect } from "./mcp";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

test.beforeAll(async () => {
  const client = await connect(gateway);
  await client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } });
  await client.close();
});

test.describe.configure({ mode: "parallel" });

/** What is wrong with a page for those who cannot see, hear or use a mouse, if it is serious. */
async function violations(page: Page, rules?: string[]): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const found = await page.evaluate(
    (rules) => (window as unknown as { axe: typeof axe }).axe.run(rules ? { runOnly: rules } : {}),
    rules,
  );
  const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return grave.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
}

const pages: [path: string, title: string][] = [
  ["servers", "Servers"],
  ["servers/everything", "everything"],
  ["servers/broken", "broken"],
  ["tools", "Tools"],
  ["tools/rich.plan_trip", "Tools"],
  ["prompts", "Prompts"],
  ["prompts/everything.completable-prompt", "Prompts"],
  ["resources", "Resources"],
  ["calls", "Calls"],
  ["chat", "Chat"],
  ["approvals", "Approvals"],
  ["profiles", "Profiles"],
  ["pins", "Pins"],
  ["connect", "Connect"],
];

for (const [path, title] of pages) {
  test(`${path} is fit for everybody: light and dark, wide and narrow`, async ({ page }) => {
    await page.addInitScript(() => {
      const shifts = { sum: 0 };
      Object.assign(window, { shifts });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]) {
          if (!entry.hadRecentInput) shifts.sum += entry.value;
        }
      }).observe({ type: "layout-shift", buffered: true });
    });
    await open(page, gateway, path);
    await settled(page);
    await expect(page).toHaveTitle(new RegExp(title));
    const shifted = await page.evaluate(() => (window as unknown as { shifts: { sum: number } }).shifts.sum);
    expect(shifted, "what is shown stays where it is").toBeLessThan(0.1);
    for (const colorScheme of ["light", "dark"] as const) {
      for (const width of [1280, 390]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        // The two schemes differ in their colours and in nothing else.
        const rules = colorScheme === "light" ? undefined : ["color-contrast", "link-in-text-block"];
        expect(await violations(page, rules), `${colorScheme}, ${width} px`).toEqual([]);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(beyond, `nothing reaches beyond ${width} px`).toBeLessThanOrEqual(0);
      }
    }
  });
}

test("the login is fit for everybody", async ({ page, watch }) => {
  watch.allow(/status of 401/);
  await page.goto(gateway.page("servers"));
  await expect(page.getByLabel("Token")).toBeVisible();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violations(page), colorScheme).toEqual([]);
  }
});
