// What a page does while the gateway is away.
import { expect, main, open, test } from "./console";
import { everything, serving } from "./gateway";

const gateway = serving({ servers: { everything } });

test("a page says that the gateway is gone, and asks for the token when it is back", async ({ page, watch }) => {
  watch.allow(/Failed to load resource/, /net::ERR/);
  await open(page, gateway, "servers");
  await expect(main(page).getByRole("list", { name: "Servers" }).getByText("ready")).toBeVisible();
  await gateway.kill();
  const bar = page.getByText("Connection to the gateway lost");
  await expect(bar).toBeVisible();
  await gateway.start();
  // Sessions end with the gateway.
  await page.getByLabel("Token").fill(gateway.token, { timeout: 20_000 });
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(bar).toBeHidden();
  await expect(main(page).getByRole("list", { name: "Servers" }).getByText("ready")).toBeVisible();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Tools" }).click();
  await expect(main(page)).toContainText("get-sum");
});
