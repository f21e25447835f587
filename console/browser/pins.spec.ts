// Pins: what a server says that nobody agreed to.
import { expect, main, open, test } from "./console";
import { own, serving } from "./gateway";
import { connect } from "./mcp";

const gateway = serving({
  servers: { sums: own("shifty", "{HOME}/later") },
  before: [["lock", "--yes"]],
});

test("a changed tool is withheld until somebody reads the difference and agrees", async ({ page }) => {
  await open(page, gateway, "pins");
  await expect(main(page)).toContainText("Everything is as it was agreed to");
  gateway.write("later", "");
  await page.goto(gateway.page("servers/sums"));
  await main(page).getByRole("button", { name: "Restart" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /^Pins/ }).click();
  const difference = main(page).getByRole("article", { name: "tool add changed" });
  await expect(difference.getByRole("region", { name: /What changed/ })).toContainText("removed: Adds two numbers.");
  await expect(difference.getByRole("region", { name: /What changed/ })).toContainText("read ~/.ssh/id_rsa");
  await expect(difference).toContainText("Attacks look like this");

  const client = await connect(gateway);
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  expect(await names()).toEqual(["subtract"]);
  await difference.getByRole("link", { name: "add" }).click();
  await expect(main(page).getByRole("region", { name: "Changed since it was agreed to" })).toContainText("It is not what was agreed to.");
  await main(page).getByRole("link", { name: "See and agree" }).click();

  const before = gateway.read("consort.lock");
  await main(page).getByRole("button", { name: /^Agree to 1 difference/ }).click();
  const sure = page.getByRole("dialog", { name: "Agree to what sums says now?" });
  await expect(sure).toContainText("Attacks look like this");
  await sure.getByRole("button", { name: "Agree" }).click();
  await expect(main(page)).toContainText("Everything is as it was agreed to");
  expect(gateway.read("consort.lock")).not.toBe(before);
  await expect.poll(names).toEqual(["add", "subtract"]);
  await client.close();
});
