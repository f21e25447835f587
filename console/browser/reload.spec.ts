// Config changes that are kept out, and accepting them.
import { expect, open, test } from "./console";
import { own, serving } from "./gateway";
import { connect } from "./mcp";

const POLICY = '[[consort.policy.rules]]\ntools = ["subtract"]\nthen = "deny"\n';
const gateway = serving({ servers: { sums: own("shifty", "{HOME}/later") }, config: POLICY });

test("a config that lost its policy is kept out until somebody accepts it", async ({ page }) => {
  await open(page, gateway, "servers");
  const client = await connect(gateway);
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  await expect.poll(names).toEqual(["add"]);
  const whole = gateway.read("consort.toml");
  gateway.write("consort.toml", whole.replace(POLICY, ""));
  const notice = page.getByRole("alert").filter({ hasText: "Config change rejected" });
  await expect(notice).toContainText("[consort.policy] was removed");
  await notice.getByRole("button", { name: "Reload" }).click();
  await expect(notice).toBeVisible();
  expect(await names()).toEqual(["add"]);
  await notice.getByRole("button", { name: "Accept…" }).click();
  await page.getByRole("dialog", { name: "Accept the change?" }).getByRole("button", { name: "Accept" }).click();
  await expect(notice).toBeHidden();
  await expect.poll(names).toEqual(["add", "subtract"]);
  await client.close();
});
