// Servers: what state they are in, and what can be done about it.
import type { Locator, Page } from "@playwright/test";
import { expect, main, open, test } from "./console";
import { filesystem, node, own, serving } from "./gateway";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

function row(page: Page, name: string): Locator {
  return main(page).getByRole("list", { name: "Servers" }).getByRole("listitem").filter({ has: page.getByRole("link", { name, exact: true }) });
}

test("each server shows its state, era, transport and what its tools cost", async ({ page }) => {
  await open(page, gateway, "servers");
  await expect(row(page, "everything")).toContainText("ready");
  await expect(row(page, "everything")).toContainText("stdio · legacy · 2025-11-25");
  await expect(row(page, "everything")).toContainText(/[\d,]+ tokens/);
  await expect(row(page, "fastmcp")).toContainText("stdio · modern · 2026-07-28");
  await expect(row(page, "broken")).toContainText("failed");
  await row(page, "everything").getByRole("link", { name: "everything", exact: true }).click();
  await expect(page).toHaveURL(gateway.page("servers/everything"));
  const command = main(page).getByRole("list", { name: "Program and arguments" }).getByRole("listitem");
  await expect(command).toHaveText([node, /server-everything\/dist\/index\.js$/, "stdio"]);
});

test("a server that does not start shows why: its error and what it wrote", async ({ page }) => {
  await open(page, gateway, "servers/broken");
  await expect(main(page).getByRole("region", { name: "State" })).toContainText("failed");
  await expect(main(page).getByRole("alert")).toBeVisible();
  await expect(main(page).getByRole("region", { name: "Last lines of standard error" })).toContainText("cannot open the vault: no key");
});

test("a server is restarted, disabled and connected again, and the page follows", async ({ page }) => {
  await open(page, gateway, "servers/rich");
  const state = main(page).getByRole("region", { name: "State" });
  const press = (name: RegExp) => main(page).getByRole("button", { name }).click();
  await expect(state).toContainText("ready");
  await press(/^Disconnect$/);
  await expect(state).not.toContainText("ready");
  await press(/^Connect$/);
  await expect(state).toContainText("ready");
  await press(/^Restart$/);
  await expect(page.getByRole("status", { name: "Notices" })).toContainText("Restarting rich");
  await expect(state).toContainText("ready");
  await press(/^Disable$/);
  await expect(state).toContainText("disabled");
  await press(/connect$/);
  await expect(state).toContainText("ready");
});

test("a server is added by a form, with its exact command shown before it runs, and taken out again", async ({ page }) => {
  await open(page, gateway, "servers");
  await main(page).getByRole("button", { name: "Add servers" }).click();
  const dialog = page.getByRole("dialog", { name: "Add servers" });
  const [program, ...words] = own("shifty", "no where");
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("sums");
  await dialog.getByLabel("Program").fill(program);
  await dialog.getByLabel("Arguments, one per line").fill(words.join("\n"));
  const preview = dialog.getByRole("article", { name: "Server sums" });
  await expect(preview.getByRole("list", { name: "Program and arguments" }).getByRole("listitem")).toHaveText([program, ...words]);
  expect(gateway.read("consort.toml"), "nothing is written before it is agreed to").not.toContain("sums");
  const add = dialog.getByRole("button", { name: "Add 1 server" });
  await expect(add, "it is added only with the token").toBeDisabled();
  await dialog.getByLabel("Token").fill(gateway.token);
  await add.click();
  await expect(page).toHaveURL(gateway.page("servers/sums"));
  await expect(main(page).getByRole("region", { name: "State" })).toContainText("ready");
  expect(gateway.read("consort.toml")).toContain("sums");
  await main(page).getByRole("button", { name: "Remove…" }).click();
  await page.getByRole("dialog", { name: "Remove sums?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page).toHaveURL(gateway.page("servers"));
  await expect(row(page, "everything")).toBeVisible();
  await expect(row(page, "sums")).toHaveCount(0);
  expect(gateway.read("consort.toml")).not.toContain("sums");
});

test("a pasted mcp.json shows every command before anything runs; secrets are not shown", async ({ page }) => {
  await open(page, gateway, "servers?add=paste");
  const dialog = page.getByRole("dialog", { name: "Add servers" });
  const [command, ...args] = filesystem(gateway.home);
  const pasted = {
    notes: { command, args },
    other: { command: node, args: own("shifty", "/nowhere").slice(1), env: { API_KEY: "s3cr3t-value" } },
  };
  const paste = (mcpServers: object) => dialog.getByRole("textbox", { name: /mcp\.json/ }).fill(JSON.stringify({ mcpServers }));
  await paste({ ...pasted, everything: { command: "true" } });
  const preview = dialog.getByRole("region", { name: "Preview" });
  await expect(preview.getByRole("article", { name: "Server notes" })).toContainText("server-filesystem");
  await expect(preview.getByRole("article", { name: "Server other" })).toContainText("API_KEY");
  await expect(preview).not.toContainText("s3cr3t-value");
  await expect(preview.getByRole("article", { name: "Server everything" })).toContainText("name is taken");
  await expect(dialog.getByRole("button", { name: "Add 3 servers" })).toBeDisabled();
  await paste(pasted);
  await dialog.getByLabel("Token").fill(gateway.token);
  await dialog.getByRole("button", { name: "Add 2 servers" }).click();
  await expect(dialog).toHaveCount(0);
  for (const name of ["notes", "other"]) await expect(row(page, name)).toContainText("ready");
});

test("what is not an mcp.json is refused in words", async ({ page, watch }) => {
  watch.allow(/status of 4/);
  await open(page, gateway, "servers?add=paste");
  const dialog = page.getByRole("dialog", { name: "Add servers" });
  await dialog.getByRole("textbox", { name: /mcp\.json/ }).fill("{ nonsense");
  await expect(dialog.getByRole("alert")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Add", exact: true })).toBeDisabled();
});
