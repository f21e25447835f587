// Five thousand tools: only what is seen is drawn, and typing stays quick.
import { expect, main, test } from "./console";
import { own, serving } from "./gateway";
import { latencies, painted } from "./speed";

const gateway = serving({ servers: { company: own("many", "5000") } });

test("five thousand tools are drawn at once and searched as fast as one types", async ({ page }) => {
  const first = await painted(page, gateway);
  const tools = main(page).getByRole("listbox", { name: "Tools" }).getByRole("option");
  const rows = await tools.count();
  const typed = await latencies(page, "archive invoice");
  console.log(`first paint of the tools ${first} ms, typing ${typed.map(Math.round).join(" ")} ms, ${rows} rows drawn`);
  expect(rows).toBeLessThan(100);
  // Far above what is claimed, for a busy machine and a debug build; scripts/console bench measures.
  expect(first).toBeLessThan(5_000);
  expect(Math.max(...typed)).toBeLessThan(2_000);
  await expect(tools.first()).toContainText("archive_invoice");
  await page.getByRole("searchbox").fill("");
  await expect(tools.first()).toContainText("list_invoice");
  await tools.first().hover();
  await page.mouse.wheel(0, 100_000);
  await expect(tools.first(), "what is above is no longer drawn").not.toContainText("list_invoice");
  expect(await tools.count()).toBeLessThan(100);
});
