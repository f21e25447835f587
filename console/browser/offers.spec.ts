// Prompts and resources.
import { expect, main, open, test } from "./console";
import { serving } from "./gateway";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

test("a prompt's arguments are completed by its server, one by the other", async ({ page }) => {
  await open(page, gateway, "prompts");
  await main(page).getByRole("option", { name: /Team Management/ }).click();
  await expect(page).toHaveURL(gateway.page("prompts/everything.completable-prompt"));
  const completions = main(page).getByRole("listbox", { name: "Completions" });
  await main(page).getByRole("combobox", { name: /^department/ }).pressSequentially("Eng");
  await completions.getByRole("option", { name: "Engineering" }).click();
  await main(page).getByRole("combobox", { name: /^name/ }).pressSequentially("A");
  await expect(completions.getByRole("option")).toHaveText(["Alice"]);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await main(page).getByRole("button", { name: "Render" }).click();
  await expect(main(page).getByRole("region", { name: "Messages" })).toContainText("Please promote Alice to the head of the Engineering team.");
});

test("a prompt without what it needs says so", async ({ page }) => {
  await open(page, gateway, "prompts/everything.args-prompt");
  await main(page).getByRole("button", { name: "Render" }).click();
  await expect(main(page).getByRole("combobox", { name: /^city/i })).toHaveAttribute("aria-invalid", "true");
});

test("a resource is read, and its address leads to it", async ({ page }) => {
  await open(page, gateway, "resources");
  await page.getByRole("searchbox").fill("features");
  await main(page).getByRole("option", { name: /features\.md/ }).click();
  await expect(page).toHaveURL(/uri=/);
  await expect(main(page).getByRole("article")).toContainText("Everything Server - Features");
  await page.reload();
  await expect(main(page).getByRole("article")).toContainText("Everything Server - Features");
});

test("a template is filled in and read", async ({ page }) => {
  await open(page, gateway, `resources?${new URLSearchParams({ server: "everything", uri: "demo://resource/dynamic/text/{resourceId}" })}`);
  await main(page).getByRole("combobox", { name: /^resourceId/ }).fill("7");
  await main(page).getByRole("button", { name: "Read" }).click();
  await expect(main(page).getByRole("article")).toContainText("Resource 7: This is a plaintext resource");
});

test("a resource that is watched is read again when its server says that it changed", async ({ page }) => {
  await open(page, gateway, `resources?${new URLSearchParams({ server: "rich", uri: "rich://count" })}`);
  const article = main(page).getByRole("article");
  await expect(article).toContainText("count: 0");
  await article.getByRole("button", { name: "Watch for changes" }).click();
  await expect(article.getByRole("status")).toContainText("watching");
  const other = await page.context().newPage();
  await other.goto(gateway.page("tools/rich.count_up"));
  await main(other).getByRole("button", { name: "Call", exact: true }).click();
  await expect(main(other)).toContainText("the count is 1");
  await expect(article).toContainText("count: 1");
  await expect(article.getByRole("status")).toContainText("1 change so far");
});
