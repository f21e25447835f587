// What a person waits for, measured in the page.
import { expect, type Page } from "@playwright/test";
import { open } from "./console";
import type { Gateway } from "./gateway";

/** Waits until the gateway has the tools. */
export async function ready(gateway: Gateway): Promise<void> {
  await expect.poll(() => gateway.api<unknown[]>("/tools?limit=10").then((tools) => tools.length), { timeout: 30_000 }).toBeGreaterThan(0);
}

/** Milliseconds from asking for the page of tools to the frame that shows them. */
export async function painted(page: Page, gateway: Gateway): Promise<number> {
  await ready(gateway);
  await page.addInitScript(() => {
    const wait = () => {
      if (document.querySelector('main a[href*="/tools/"]')) {
        requestAnimationFrame(() => setTimeout(() => Object.assign(window, { painted: performance.now() })));
      } else requestAnimationFrame(wait);
    };
    requestAnimationFrame(wait);
  });
  await open(page, gateway, "tools");
  const handle = await page.waitForFunction(() => (window as { painted?: number }).painted);
  return Math.round((await handle.jsonValue()) as number);
}

/** Milliseconds from asking for a page to the first frame with something on it. */
export function drawn(page: Page): Promise<number> {
  return page.evaluate(() => Math.round(performance.getEntriesByName("first-contentful-paint")[0]!.startTime));
}

/** Milliseconds from each key of a search to the frame that shows what it found. */
export async function latencies(page: Page, text: string): Promise<number[]> {
  const search = page.getByRole("searchbox");
  await search.fill("");
  await search.focus();
  const times: number[] = [];
  for (const letter of text) {
    if (letter !== " ") await page.evaluate(listen);
    await page.keyboard.type(letter);
    if (letter === " ") continue;
    times.push(await page.evaluate(() => (window as unknown as { typed: Promise<number> }).typed));
  }
  return times;
}

/** In the page: promises the time from the next input to the frame after the list changed for it. */
function listen(): void {
  const list = document.querySelector("main")!;
  const typed = new Promise<number>((resolve) => {
    document.addEventListener(
      "input",
      () => {
        const begin = performance.now();
        let timer: ReturnType<typeof setTimeout>;
        const done = () => {
          observer.disconnect();
          clearTimeout(timer);
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begin)));
        };
        const observer = new MutationObserver(done);
        observer.observe(list, { childList: true, subtree: true, characterData: true });
        // The same tools may be found as before: then there is nothing to wait for.
        timer = setTimeout(done, 1_000);
      },
      { once: true, capture: true },
    );
  });
  Object.assign(window, { typed });
}
