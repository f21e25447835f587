// The claims about speed, measured: `scripts/console bench`.
import { test } from "./console";
import { own, serving } from "./gateway";
import { drawn, latencies, painted } from "./speed";

const gateway = serving({ servers: { company: own("many", "5000") } });
const words = ["archive invoice", "search customer by owner", "export ledger", "validate certificate"];

test("five thousand tools", async ({ browser }) => {
  const firsts: number[] = [];
  const paints: number[] = [];
  const keys: number[] = [];
  for (let round = 0; round < 10; round++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    paints.push(await painted(page, gateway));
    firsts.push(await drawn(page));
    keys.push(...(await latencies(page, words[round % words.length]!)));
    await context.close();
  }
  const row = (what: string, aim: string, values: number[]) => {
    const sorted = values.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
    return `| ${what} | ${aim} | ${at(0.5)} ms | ${at(0.95)} ms | ${at(1)} ms | ${values.length} |`;
  };
  console.log(
    ["", "| 5,000 tools | aim | median | p95 | worst | times |", "|---|---|---|---|---|---|", row("first paint", "≤ 500 ms", firsts), row("the tools are shown", "", paints), row("a key of a search, until its tools are shown", "≤ 50 ms", keys), ""].join("\n"),
  );
});
