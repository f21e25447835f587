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
  await expect(main(page)).toContainText("All definitions match the lock");
  gateway.write("later", "");
  await page.goto(gateway.page("servers/sums"));
  await main(page).getByRole("button", { name: "Restart" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /^Pins/ }).click();
  const difference = main(page).getByRole("article", { name: "tool add changed" });
  await expect(difference.getByRole("region", { name: /What changed/ })).toContainText("removed: Adds two numbers.");
  await expect(difference.getByRole("region", { name: /What changed/ })).toContainText("read ~/.ssh/id_rsa");
  await expect(difference).toContainText("Suspicious content");

  const client = await connect(gateway);
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  expect(await names()).toEqual(["subtract"]);
  await difference.getByRole("link", { name: "add" }).click();
  await expect(main(page).getByRole("region", { name: "Changed since approval" })).toContainText("Its definition differs from the lock.");
  await main(page).getByRole("link", { name: "Review and approve" }).click();

  const before = gateway.read("consort.lock");
  await main(page).getByRole("button", { name: /^Approve 1 difference/ }).click();
  const sure = page.getByRole("dialog", { name: "Approve the definitions of sums?" });
  await expect(sure).toContainText("Suspicious content");
  await sure.getByRole("button", { name: "Approve" }).click();
  await expect(main(page)).toContainText("All definitions match the lock");
  expect(gateway.read("consort.lock")).not.toBe(before);
  await expect.poll(names).toEqual(["add", "subtract"]);
  await client.close();
});
