// Chat: an agent of the config, with a scripted model and real tools.
import type { Locator, Page } from "@playwright/test";
import { expect, main, open, record, recorded, test } from "./console";
import { serving } from "./gateway";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

/** What was said and done. */
const talk = (page: Page): Locator => main(page).getByRole("log", { name: "Conversation" });

async function say(page: Page, agent: string, text: string): Promise<void> {
  await open(page, gateway, "chat");
  await main(page).getByLabel("Agent").selectOption(agent);
  await main(page).getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/chat\/.+/);
}

test("text streams, a tool call unfolds with its progress, and the answer is set", async ({ page }) => {
  await record(page);
  await say(page, "worker", "do the work");
  await expect(talk(page).getByRole("article", { name: "You" })).toContainText("do the work");
  await expect(talk(page)).toContainText("I will work on it");
  const call = talk(page).getByRole("region", { name: "Call of work" });
  await expect(call.getByRole("progressbar")).toBeVisible();
  await expect(talk(page)).not.toContainText("steps are done");
  await expect(talk(page).locator("strong", { hasText: "five" })).toBeVisible();
  await recorded(page);
  await expect(talk(page)).toContainText("2 turns · 1 call");
  await call.getByRole("button").first().click();
  await expect(call.getByRole("region", { name: "Arguments" })).toContainText('"steps": 5');
});

test("a page that is opened in the middle of a run shows it from its beginning", async ({ page, context }) => {
  await say(page, "worker", "work while others look");
  await expect(talk(page).getByRole("progressbar")).toBeVisible();
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(talk(other)).toContainText("I will work on it");
  for (const each of [page, other]) await expect(talk(each).locator("strong", { hasText: "five" })).toBeVisible();
});

test("a conversation is there after a reload, goes on, and is forked", async ({ page }) => {
  await say(page, "worker", "work once more");
  await expect(talk(page).locator("strong", { hasText: "five" })).toBeVisible();
  await page.reload();
  await expect(talk(page).locator("strong", { hasText: "five" })).toBeVisible();
  await main(page).getByLabel("Message").fill("and then?");
  await page.keyboard.press("Enter");
  await expect(talk(page)).toContainText("There is nothing more to do.");
  const before = page.url();
  const answer = talk(page).getByRole("article", { name: "Agent" }).filter({ hasText: "five" });
  await answer.hover();
  await answer.getByRole("button", { name: "Fork from here" }).click();
  await expect(page).not.toHaveURL(before);
  await expect(talk(page).locator("strong", { hasText: "five" })).toBeVisible();
  await expect(talk(page)).not.toContainText("There is nothing more to do.");
  const past = main(page).getByRole("complementary", { name: "Past conversations" });
  await expect(past.getByRole("link", { name: /work once more/ })).toHaveCount(2);
  expect(gateway.run("conversations", "list")).toContain("work once more");
});

test("a call that is asked about is approved within the conversation", async ({ page }) => {
  await say(page, "careful", "tidy up");
  const call = talk(page).getByRole("region", { name: "Call of delete_entities" });
  await expect(talk(page)).toContainText("Approve this call?");
  await expect(talk(page).getByLabel("Arguments")).toHaveValue(/old notes/);
  await talk(page).getByRole("button", { name: "Approve once" }).click();
  await expect(talk(page)).toContainText("That is settled.");
  await expect(call).toContainText("deleted");
});

test("a call that is denied is told to the model", async ({ page }) => {
  await say(page, "careful", "tidy up, or not");
  const call = talk(page).getByRole("region", { name: "Call of delete_entities" });
  await talk(page).getByRole("button", { name: "Deny…" }).click();
  await talk(page).getByLabel(/^Reason/).fill("keep them all");
  await page.keyboard.press("Enter");
  await expect(talk(page)).toContainText("That is settled.");
  await expect(call).toContainText("keep them all");
});

test("what a server asks in the middle of a call is answered within the conversation", async ({ page }) => {
  await say(page, "asker", "ask me");
  await expect(talk(page)).toContainText("Who are you?");
  await talk(page).getByLabel(/^value/i).fill("Ada");
  await talk(page).getByRole("button", { name: "Send" }).click();
  await expect(talk(page)).toContainText("Thank you.");
  await expect(talk(page)).toContainText("accept Ada");
});

test("a question keeps what is typed when its call is told only later", async ({ page }) => {
  // Questions and what happens in a conversation come by two streams; here the second comes late.
  let let_go = () => {};
  const held = new Promise<void>((resolve) => (let_go = resolve));
  await page.route("**/api/conversations/*/events", async (route) => {
    await held;
    await route.continue();
  });
  await say(page, "asker", "ask me");
  await expect(talk(page)).toContainText("Who are you?");
  const field = talk(page).getByLabel(/^value/i);
  await field.fill("Ad");
  await field.focus();
  let_go();
  await expect(talk(page).getByRole("region", { name: /^Call of/ })).toBeVisible();
  await expect(field).toHaveValue("Ad");
  await expect(field).toBeFocused();
  await page.keyboard.type("a");
  await talk(page).getByRole("button", { name: "Send" }).click();
  await expect(talk(page)).toContainText("accept Ada");
});

test("a run is stopped, and the conversation stays", async ({ page }) => {
  await say(page, "worker", "work and be stopped");
  await expect(talk(page).getByRole("progressbar")).toBeVisible();
  await main(page).getByRole("button", { name: "Stop", exact: true }).click();
  await expect(talk(page).getByRole("alert")).toContainText("Stopped");
  await page.reload();
  await expect(talk(page)).toContainText("work and be stopped");
});
