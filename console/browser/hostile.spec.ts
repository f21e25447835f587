// Hostile strings: whatever a server says is text, and stays text.
import { expect, main, open, settled, test } from "./console";
import { own, serving } from "./gateway";
import type { Page } from "@playwright/test";

const gateway = serving({ servers: { hostile: own("hostile") } });
const named = encodeURIComponent("hostile.<script>window.hacked='name'</script>");

/** Nothing of what the server said has run, and nothing of it became an element. */
async function unharmed(page: Page): Promise<void> {
  expect(await page.evaluate(() => (window as { hacked?: unknown }).hacked)).toBeUndefined();
  const elements = await page.evaluate(() => ({
    frames: document.querySelectorAll("iframe, object, embed").length,
    scripts: document.querySelectorAll("script").length,
    handlers: document.querySelectorAll("[onerror], [onload], [onclick]").length,
    addresses: [...document.body.querySelectorAll("[href], [src]")]
      .map((element) => element.getAttribute("href") ?? element.getAttribute("src") ?? "")
      .filter((address) => /^\s*(javascript|vbscript):/i.test(address) || /^data:(?!image\/|audio\/)/i.test(address)),
  }));
  expect(elements).toEqual({ frames: 0, scripts: 1, handlers: 0, addresses: [] });
}

for (const path of ["servers", "servers/hostile", "tools", `tools/${named}`, "prompts", "prompts/hostile.tell", "resources", "calls", "profiles", "pins"]) {
  test(`${decodeURIComponent(path)} shows what a hostile server says as text`, async ({ page }) => {
    await open(page, gateway, path);
    await settled(page);
    if (path === "servers/hostile") await expect(main(page)).toContainText("<script>window.hacked=\"instructions\"</script>");
    if (path === "tools") await expect(main(page)).toContainText("[run me](javascript:window.hacked='description')");
    await unharmed(page);
  });
}

test("a hostile result is text, its picture is only a picture, and nothing is fetched", async ({ page }) => {
  await open(page, gateway, "tools/hostile.answer");
  await main(page).getByRole("button", { name: "Call", exact: true }).click();
  await expect(main(page)).toContainText("<script>window.hacked=\"result\"</script>");
  await expect(main(page)).toContainText("evil.invalid");
  await unharmed(page);
  for (const image of await main(page).locator("img").all()) {
    expect(await image.getAttribute("src")).toMatch(/^(data:image\/(png|jpeg|gif|webp|svg\+xml)|blob:)/);
  }
});

for (const tool of ["fail", "break", "chatter"]) {
  test(`what the tool ${tool} says is text`, async ({ page }) => {
    await open(page, gateway, `tools/hostile.${tool}`);
    await main(page).getByRole("button", { name: "Call", exact: true }).click();
    await expect(main(page)).toContainText(/failure <script>|error <script>|said enough/);
    await unharmed(page);
  });
}

test("a hostile question is text", async ({ page }) => {
  await open(page, gateway, "tools/hostile.question");
  await main(page).getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByText("<script>window.hacked=\"message\"</script>").first()).toBeVisible();
  await unharmed(page);
});

test("hostile prompts and resources are text", async ({ page }) => {
  await open(page, gateway, "prompts/hostile.tell");
  await main(page).getByRole("button", { name: "Render" }).click();
  await expect(main(page)).toContainText("evil.invalid/prompt-message");
  await unharmed(page);
  for (const uri of ["hostile://page", "hostile://picture"]) {
    await page.goto(gateway.page(`resources?${new URLSearchParams({ server: "hostile", uri })}`));
    await settled(page);
    await unharmed(page);
  }
});

test("letters that mislead are made visible", async ({ page }) => {
  await open(page, gateway, "tools/hostile.misleading");
  await expect(main(page)).toContainText("\\u202e");
  expect(await main(page).textContent()).not.toContain("\u202e");
});

test("a megabyte of text or of structure does not freeze the page", async ({ page }) => {
  for (const tool of ["large_text", "large_structure"]) {
    await open(page, gateway, `tools/hostile.${tool}`);
    await page.evaluate(() => {
      const long = { worst: 0 };
      Object.assign(window, { long });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) long.worst = Math.max(long.worst, entry.duration);
      }).observe({ type: "longtask" });
    });
    await main(page).getByRole("button", { name: "Call", exact: true }).click();
    await expect(main(page)).toContainText(tool === "large_text" ? "line 100:" : "records");
    const { worst, elements } = await page.evaluate(() => ({
      worst: (window as unknown as { long: { worst: number } }).long.worst,
      elements: document.querySelectorAll("*").length,
    }));
    console.log(`${tool}: the longest pause was ${Math.round(worst)} ms, ${elements} elements`);
    expect(worst).toBeLessThan(1_000);
    expect(elements).toBeLessThan(5_000);
  }
});

test("a definition that deserves a look is marked in the list, and its page quotes why", async ({ page }) => {
  await open(page, gateway, "tools");
  const listed = main(page).getByRole("listbox", { name: "Tools" }).getByRole("option");
  await expect(listed.filter({ hasText: /^tidy/ })).toContainText("look");
  await expect(listed.filter({ hasText: /^fail/ })).not.toContainText("look");
  await listed.filter({ hasText: /^tidy/ }).click();
  const findings = main(page).getByRole("region", { name: "Needs review" });
  await expect(findings).toContainText("/description: instructions to hide something from the user");
  await expect(findings).toContainText("do not tell the user");
  await open(page, gateway, "tools/hostile.misleading");
  await expect(findings).toContainText("\\u{202e}");
  await open(page, gateway, "tools/hostile.fail");
  await expect(main(page).getByRole("heading", { level: 2, name: "fail" })).toBeVisible();
  await expect(findings).toHaveCount(0);
});
