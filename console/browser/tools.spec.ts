// Tools: found, looked at, and really called.
import type { Locator, Page } from "@playwright/test";
import { expect, main, open, record, recorded, test } from "./console";
import { serving } from "./gateway";
import { ensemble } from "./setting";

const gateway = serving(ensemble);

const listed = (page: Page, name: string | RegExp): Locator => main(page).getByRole("listbox", { name: "Tools" }).getByRole("option", { name });
const call = (page: Page): Promise<void> => main(page).getByRole("button", { name: "Call", exact: true }).click();
/** What comes of a call. */
const happening = (page: Page): Locator => main(page).getByRole("region", { name: "The call" });

test("search finds by what a tool does, as it is typed, and the address keeps it", async ({ page }) => {
  await open(page, gateway, "tools");
  await expect(listed(page, /^get-sum/)).toBeVisible();
  await page.getByRole("searchbox").pressSequentially("add two numbers");
  await expect(listed(page, /^get-env/)).toHaveCount(0);
  await expect(listed(page, /^add\b/)).toBeVisible();
  await expect(page).toHaveURL(/q=add\+two\+numbers/);
  await page.reload();
  await expect(page.getByRole("searchbox")).toHaveValue("add two numbers");
  await expect(listed(page, /^add\b/)).toBeVisible();
});

test("tools are chosen by keys, from the search on", async ({ page }) => {
  await open(page, gateway, "tools");
  await expect(listed(page, /^get-sum/)).toBeVisible();
  await page.keyboard.press("/");
  await page.keyboard.type("tiny image");
  await expect(listed(page, /^get-env/)).toHaveCount(0);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/tools\/everything\.get-tiny-image/);
});

test("a tool shows what it costs and what a rule made of it, from and to", async ({ page }) => {
  await open(page, gateway, "tools/everything.echo");
  await expect(main(page).getByRole("heading", { level: 2, name: "repeat" })).toBeVisible();
  await expect(main(page).getByRole("article")).toContainText(/\d+ tokens/);
  await main(page).getByRole("tab", { name: /^Rules/ }).click();
  const rules = main(page).getByRole("tabpanel");
  for (const words of ["from: echo", "to: repeat", "to: Says it again."]) await expect(rules).toContainText(words);
  await main(page).getByRole("tab", { name: "Definition" }).click();
  await expect(main(page).getByRole("tabpanel")).toContainText("words");
});

test("a form has nested objects, lists, choices, one of several and defaults, and says what is wrong", async ({ page }) => {
  await open(page, gateway, "tools/rich.plan_trip");
  const form = main(page).getByRole("article");
  const traveller = form.getByRole("group", { name: /^Traveller/ });
  const stops = form.getByRole("group", { name: /^Stops/ });
  await expect(form.getByLabel(/^Class/)).toHaveValue("0");
  await expect(form.getByLabel(/^Notify/)).toBeChecked();
  await call(page);
  await expect(form.getByRole("alert")).toContainText("traveller › name is required");
  await expect(traveller.getByLabel(/^Name/)).toHaveAttribute("aria-invalid", "true");
  await traveller.getByLabel(/^Name/).fill("A");
  await expect(form.getByRole("alert")).toContainText("must have at least 2 characters");
  await traveller.getByLabel(/^Name/).fill("Ada");
  await traveller.getByLabel(/^Age/).fill("-1");
  await expect(form.getByRole("alert")).toContainText("must be at least 0");
  await traveller.getByLabel(/^Age/).fill("36");
  await traveller.getByLabel(/^Contact/).selectOption({ label: "By phone" });
  await traveller.getByLabel(/^Phone/).fill("+47 22 22 22 22");
  await stops.getByRole("button", { name: "Add to Stops" }).click();
  await stops.getByLabel(/^City/).nth(0).selectOption({ label: "Bergen" });
  await stops.getByLabel(/^City/).nth(1).selectOption({ label: "Oslo" });
  await stops.getByRole("button", { name: "Move Stops 2 up" }).click();
  await expect(stops.getByLabel(/^Nights/).nth(1)).toHaveValue("2");
  await stops.getByLabel(/^Nights/).nth(1).fill("3");
  const expected = {
    traveller: { name: "Ada", age: 36, contact: { phone: "+47 22 22 22 22" } },
    stops: [{ city: "Oslo", nights: 2 }, { city: "Bergen", nights: 3 }],
    class: "economy",
    notify: true,
  };
  await form.getByRole("button", { name: "JSON", exact: true }).click();
  expect(JSON.parse(await form.getByLabel("Arguments as JSON").inputValue())).toEqual(expected);
  await form.getByRole("button", { name: "Form", exact: true }).click();
  await call(page);
  await expect(happening(page)).toContainText("Completed");
  await expect(happening(page)).toContainText("Bergen");
});

test("arguments can be written as JSON, and what is not JSON is told with its place", async ({ page }) => {
  await open(page, gateway, "tools/everything.get-sum");
  const form = main(page).getByRole("article");
  await form.getByLabel(/^a\b/).fill("20");
  await form.getByRole("button", { name: "JSON", exact: true }).click();
  const raw = form.getByLabel("Arguments as JSON");
  await expect(raw).toHaveValue(/"a": 20/);
  await raw.fill('{"a": 20,\n "b": ');
  await call(page);
  await expect(form.getByText(/^line 2, column \d+:/)).toBeVisible();
  await expect(happening(page)).toHaveCount(0);
  await raw.fill('{"a": 20, "b": 22}');
  await call(page);
  await expect(happening(page)).toContainText("The sum of 20 and 22 is 42.");
});

test("a call shows its progress while it runs", async ({ page }) => {
  await record(page);
  await open(page, gateway, "tools/everything.trigger-long-running-operation");
  await main(page).getByLabel(/^duration/).fill("4");
  await main(page).getByLabel(/^steps/).fill("8");
  await main(page).getByLabel(/^steps/).press("Control+Enter");
  await expect(happening(page)).toContainText("Calling…");
  await expect(happening(page)).toContainText("Long running operation completed. Duration: 4 seconds, Steps: 8.");
  await recorded(page);
});

test("log lines come as the server writes them, and markdown is set", async ({ page }) => {
  await open(page, gateway, "tools/rich.work");
  await main(page).getByLabel(/^Milliseconds/).fill("400");
  await call(page);
  await expect(happening(page).getByRole("log")).toContainText("log line 1");
  await expect(happening(page)).toContainText("Calling…");
  await expect(happening(page).getByRole("heading", { name: "Done" })).toBeVisible();
  await expect(happening(page).getByRole("log")).toContainText("log line 3");
  await expect(happening(page).getByRole("cell", { name: "400 ms" })).toBeVisible();
  await expect(happening(page).locator("strong", { hasText: "3" })).toBeVisible();
});

test("cancelling a call cancels it at the server", async ({ page }) => {
  await open(page, gateway, "tools/fastmcp.compute");
  await main(page).getByLabel(/^steps/i).fill("600");
  await main(page).getByLabel(/^milliseconds/i).fill("100");
  await main(page).getByLabel(/^label/i).fill("by-console");
  await call(page);
  await expect(happening(page)).toContainText(/step \d/);
  await main(page).getByRole("button", { name: "Cancel" }).click();
  await expect(happening(page)).toContainText("Cancelled");
  await expect
    .poll(async () => {
      await page.goto(gateway.page("tools/fastmcp.journal"));
      await call(page);
      await expect(happening(page)).toContainText("Completed");
      return happening(page).textContent();
    })
    .toContain("cancelled by-console");
});

test("leaving the page cancels what runs there", async ({ page }) => {
  await open(page, gateway, "tools/fastmcp.compute");
  await main(page).getByLabel(/^steps/i).fill("600");
  await main(page).getByLabel(/^milliseconds/i).fill("100");
  await main(page).getByLabel(/^label/i).fill("by-leaving");
  await call(page);
  await expect(happening(page)).toContainText(/step \d/);
  await page.goto(gateway.page("calls?name=compute"));
  await expect(main(page).getByRole("list", { name: "Calls" }).getByRole("listitem").first()).toContainText("cancelled");
});

test("pictures are shown, and links to resources are read only when they are clicked", async ({ page }) => {
  await open(page, gateway, "tools/everything.get-tiny-image");
  await call(page);
  const picture = happening(page).getByRole("img", { name: /image/ });
  await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
  await page.goto(gateway.page("tools/everything.get-resource-links"));
  await call(page);
  await expect(happening(page)).toContainText("demo://resource/dynamic/text/");
  await happening(page).getByRole("link", { name: "Read", exact: true }).last().click();
  await expect(page).toHaveURL(/resources\?.*uri=demo/);
  await expect(main(page).getByRole("article")).toContainText(/This is a plaintext resource|base64|application|text\/plain/);
});

test("structured results are set as such", async ({ page }) => {
  await open(page, gateway, "tools/everything.get-structured-content");
  await main(page).getByLabel(/^location/).selectOption({ index: 1 });
  await call(page);
  const structured = happening(page).getByRole("region", { name: "Structured content" });
  await expect(structured).toContainText("temperature");
  await expect(structured).toContainText("humidity");
});

test("a tool that fails says so", async ({ page }) => {
  await open(page, gateway, "tools/everything.get-resource-reference");
  await main(page).getByRole("button", { name: "JSON", exact: true }).click();
  await main(page).getByLabel("Arguments as JSON").fill('{"resourceType": "Text", "resourceId": 1.5}');
  await call(page);
  await expect(happening(page).getByRole("alert").first()).toBeVisible();
});

test("a call is copied as a command that works, as curl and as Rust", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, gateway, "tools/everything.get-sum");
  await main(page).getByLabel(/^a\b/).fill("20");
  await main(page).getByLabel(/^b\b/).fill("22");
  await main(page).getByText("Copy call").click();
  const copied = async (name: string) => {
    await main(page).getByRole("tab", { name, exact: true }).click();
    const text = await main(page).getByRole("region", { name, exact: true }).textContent();
    await main(page).getByRole("tabpanel", { name, exact: true }).getByRole("button", { name: "Copy" }).click();
    await expect(main(page).getByRole("button", { name: "Copied" })).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
    await expect(main(page).getByRole("button", { name: "Copied" })).toHaveCount(0);
    return text!;
  };
  const [, ...words] = (await copied("consort call")).split(" ");
  expect(gateway.run(...words)).toContain("The sum of 20 and 22 is 42.");
  expect(await copied("curl")).toContain(`${gateway.origin}/servers/everything/mcp`);
  expect(await copied("Rust")).toContain("get-sum");
});

test("what a server asks in the middle of a call is answered on the page", async ({ page }) => {
  await open(page, gateway, "tools/everything.trigger-elicitation-request");
  await call(page);
  await expect(happening(page)).toContainText("Please provide inputs");
  await happening(page).getByLabel(/^Stringname/).fill("Ada Lovelace");
  await happening(page).getByRole("button", { name: "Send" }).click();
  await expect(happening(page)).toContainText("Name: Ada Lovelace");
});

test("what models see instead of tools is listed and called by exposure", async ({ page }) => {
  await open(page, gateway, "tools");
  await expect(listed(page, /^get-sum/)).toBeVisible();
  await main(page).getByLabel("Exposure").selectOption("One tool per server");
  await expect(listed(page, /^mcp_everything/)).toBeVisible();
  await expect(listed(page, /^get-sum/)).toHaveCount(0);
  await listed(page, /^mcp_everything/).click();
  await expect(page).toHaveURL(/tools\/everything\.mcp_everything\?.*seen=per-server/);
  const form = main(page).getByRole("article");
  await form.getByRole("button", { name: "JSON", exact: true }).click();
  await form.getByLabel("Arguments as JSON").fill('{"tool_name": "get-sum", "tool_inputs": {"a": 2, "b": 3}}');
  await call(page);
  await expect(happening(page)).toContainText("5");
  await main(page).getByText("Copy call").click();
  await expect(main(page).getByRole("tabpanel", { name: "consort call" })).toContainText("--exposure per-server");
  await page.reload();
  await expect(listed(page, /^mcp_everything/)).toBeVisible();
  await main(page).getByLabel("Exposure").selectOption("Search: find_tools, call_tool");
  await expect(listed(page, /^find_tools/)).toBeVisible();
  await listed(page, /^find_tools/).click();
  await main(page).getByLabel(/^query/i).fill("add two numbers");
  await call(page);
  await expect(happening(page)).toContainText("tools: [5]");
});
