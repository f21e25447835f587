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
  const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /^Approvals/ });
  await expect(main(page)).toContainText("ready");
  const call = remove("old notes");
  await expect(link).toHaveAccessibleName(/1 pending/);
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  const request = main(page).getByRole("article");
  await expect(request).toContainText("delete_entities");
  await expect(request).toContainText("it cannot be undone");
  await expect(request.getByLabel("Arguments")).toHaveValue(/old notes/);
  await request.getByRole("button", { name: "Approve once" }).click();
  expect(await call).toContain("deleted");
  await expect(main(page)).toContainText("No pending requests");
});

test("a call that is denied never reaches its server, and the client is told why", async ({ page }) => {
  await open(page, gateway, "approvals");
  await expect(main(page)).toContainText("No pending requests");
  const call = remove("the archive");
  const request = main(page).getByRole("article");
  await expect(request.getByLabel("Arguments")).toHaveValue(/the archive/);
  await request.getByRole("button", { name: "Deny…" }).click();
  await request.getByLabel(/^Reason/).fill("we still need it");
  await page.keyboard.press("Enter");
  expect(await call).toContain("we still need it");
});

test("arguments are changed before they are sent", async ({ page }) => {
  await open(page, gateway, "approvals");
  await expect(main(page)).toContainText("No pending requests");
  const note = (name: string) => ({ name, entityType: "note", observations: [] });
  await client.callTool({ name: "create_entities", arguments: { entities: [note("keep"), note("drop")] } });
  const call = remove("keep", "drop");
  const request = main(page).getByRole("article");
  await request.getByLabel("Arguments").fill('{"entityNames": [');
  await expect(request.getByRole("button", { name: "Approve once" })).toBeDisabled();
  await expect(request).toContainText("not JSON");
  await request.getByLabel("Arguments").fill('{"entityNames": ["drop"]}');
  await request.getByRole("button", { name: "Approve once" }).click();
  expect(await call).toContain("deleted");
  const left = texts(await client.callTool({ name: "read_graph", arguments: {} }));
  expect(left).toContain("keep");
  expect(left).not.toContain("drop");
});

test("what was answered elsewhere disappears here", async ({ page, context }) => {
  await open(page, gateway, "approvals");
  await expect(main(page)).toContainText("No pending requests");
  const other = await context.newPage();
  await other.goto(gateway.page("approvals"));
  await expect(main(other)).toContainText("No pending requests");
  const call = remove("twice asked");
  await expect(main(page).getByRole("article")).toBeVisible();
  const theirs = main(other).getByRole("article");
  await theirs.getByRole("button", { name: "Deny…" }).click();
  await theirs.getByRole("button", { name: "Deny", exact: true }).click();
  await call;
  await expect(main(page).getByRole("article")).toHaveCount(0);
  await expect(page.getByRole("status", { name: "Notices" })).toContainText("answered elsewhere");
});
