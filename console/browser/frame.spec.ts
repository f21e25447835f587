// The frame around the pages: keys, theme, and what happens when the gateway goes away.
import { expect, main, open, test } from "./console";
import { serving } from "./gateway";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

test("everything is reached by keys", async ({ page }) => {
  await open(page, gateway, "servers");
  const title = page.getByRole("heading", { level: 1 });
  await expect(main(page).getByRole("list", { name: "Servers" })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await expect(title).toHaveText("Tools");
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("sum");
  await expect(page.getByRole("searchbox")).toHaveValue("sum");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("searchbox")).not.toBeFocused();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog");
  await expect(help).toContainText("Servers");
  await page.keyboard.press("Escape");
  await expect(help).toHaveCount(0);
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await expect(title).toHaveText("Servers");
  await page.keyboard.press("Tab");
  const seen = await page.evaluate(() => {
    const { outlineStyle, boxShadow } = getComputedStyle(document.activeElement!);
    return document.activeElement !== document.body && (outlineStyle !== "none" || boxShadow !== "none");
  });
  expect(seen, "focus is seen").toBe(true);
});

test("keys typed into a field are text", async ({ page }) => {
  await open(page, gateway, "tools");
  await page.getByRole("searchbox").fill("");
  await page.getByRole("searchbox").pressSequentially("g s?");
  await expect(page.getByRole("searchbox")).toHaveValue("g s?");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Tools");
});

test("the theme follows the system, or what was chosen, also after a reload", async ({ page }) => {
  await open(page, gateway, "servers");
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(ground).not.toBe(light);
  const dark = await ground();
  const toggle = page.getByRole("button", { name: /^Theme/ });
  for (let clicks = 0; clicks < 3 && (await ground()) !== light; clicks++) await toggle.click();
  expect(await ground()).toBe(light);
  await page.reload();
  await expect(toggle).toBeVisible();
  expect(await ground(), "chosen light stays light in the dark").toBe(light);
  expect(dark).not.toBe(light);
});

test("back and forward, and links to a page that is not there", async ({ page }) => {
  await open(page, gateway, "servers");
  const title = page.getByRole("heading", { level: 1 });
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Connect" }).click();
  await expect(title).toHaveText("Connect");
  await page.goBack();
  await expect(title).toHaveText("Servers");
  await page.goForward();
  await expect(title).toHaveText("Connect");
  await page.goto(gateway.page("nonsense"));
  await expect(main(page).getByRole("link", { name: /servers/ })).toBeVisible();
});

test("profiles show what each exposure costs, side by side", async ({ page }) => {
  await open(page, gateway, "profiles");
  await expect(main(page)).toContainText("numbers");
  await expect(main(page)).toContainText("small");
  for (const exposure of ["individual", "per-server", "search"]) await expect(main(page)).toContainText(exposure);
});

test("a client's snippet has this origin and can be copied", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, gateway, "connect");
  await expect(main(page)).toContainText(`${gateway.origin}/mcp`);
  await expect(main(page)).toContainText("Cursor");
  await main(page).getByRole("button", { name: /^Copy/ }).first().click();
  await expect(main(page).getByText("Copied").first()).toBeVisible();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toContain(gateway.origin);
});
