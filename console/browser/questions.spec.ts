// What waits for a person: a client that cannot be asked, answered from the console.
import { expect, main, open, test } from "./console";
import { serving } from "./gateway";
import { type Client, connect, texts } from "./mcp";
import { ensemble } from "./setting";

const gateway = serving(ensemble);
let client: Client;
test.beforeAll(async () => {
  client = await connect(gateway);
});
test.afterAll(() => client.close());

const remove = (...entityNames: string[]) => client.callTool({ name: "delete_entities", arguments: { entityNames } }).then(texts, String);

test("a call that is asked about waits until somebody approves it here", async ({ page }) => {
  await open(page, gateway, "servers");
  const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /^Questions/ });
  await expect(main(page)).toContainText("ready");
  const call = remove("old notes");
  await expect(link).toHaveAccessibleName(/1 waiting/);
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  const question = main(page).getByRole("article");
  await expect(question).toContainText("delete_entities");
  await expect(question).toContainText("it cannot be undone");
  await expect(question.getByLabel("Arguments")).toHaveValue(/old notes/);
  await question.getByRole("button", { name: "Approve once" }).click();
  expect(await call).toContain("deleted");
  await expect(main(page)).toContainText("Nothing waits");
});

test("a call that is denied never reaches its server, and the client is told why", async ({ page }) => {
  await open(page, gateway, "questions");
  await expect(main(page)).toContainText("Nothing waits");
  const call = remove("the archive");
  const question = main(page).getByRole("article");
  await expect(question.getByLabel("Arguments")).toHaveValue(/the archive/);
  await question.getByRole("button", { name: "Deny…" }).click();
  await question.getByLabel(/^Reason/).fill("we still need it");
  await page.keyboard.press("Enter");
  expect(await call).toContain("we still need it");
});

test("arguments are changed before they are sent", async ({ page }) => {
  await open(page, gateway, "questions");
  await expect(main(page)).toContainText("Nothing waits");
  const note = (name: string) => ({ name, entityType: "note", observations: [] });
  await client.callTool({ name: "create_entities", arguments: { entities: [note("keep"), note("drop")] } });
  const call = remove("keep", "drop");
  const question = main(page).getByRole("article");
  await question.getByLabel("Arguments").fill('{"entityNames": [');
  await expect(question.getByRole("button", { name: "Approve once" })).toBeDisabled();
  await expect(question).toContainText("this is not JSON");
  await question.getByLabel("Arguments").fill('{"entityNames": ["drop"]}');
  await question.getByRole("button", { name: "Approve once" }).click();
  expect(await call).toContain("deleted");
  const left = texts(await client.callTool({ name: "read_graph", arguments: {} }));
  expect(left).toContain("keep");
  expect(left).not.toContain("drop");
});

test("what was answered elsewhere disappears here", async ({ page, context }) => {
  await open(page, gateway, "questions");
  await expect(main(page)).toContainText("Nothing waits");
  const other = await context.newPage();
  await other.goto(gateway.page("questions"));
  await expect(main(other)).toContainText("Nothing waits");
  const call = remove("twice asked");
  await expect(main(page).getByRole("article")).toBeVisible();
  const theirs = main(other).getByRole("article");
  await theirs.getByRole("button", { name: "Deny…" }).click();
  await theirs.getByRole("button", { name: "Deny", exact: true }).click();
  await call;
  await expect(main(page).getByRole("article")).toHaveCount(0);
  await expect(page.getByRole("status", { name: "Notices" })).toContainText("answered elsewhere");
});
