// The console in a browser, watched: whatever a page logs as an error, asks of another origin or is refused fails the test.
import { expect, type Locator, type Page, test as base } from "@playwright/test";
import type { Gateway } from "./gateway";

export { expect };

/** What a page must not do. */
export class Watch {
  /** What went wrong, in words. */
  readonly seen: string[] = [];
  readonly #allowed: RegExp[] = [];

  constructor(page: Page) {
    page.on("console", (message) => {
      if (message.type() === "error") this.#note(`error in the console: ${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => this.#note(`uncaught: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.#note(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      const home = new URL(page.url());
      if (url.protocol === "data:" || url.protocol === "blob:" || home.protocol === "about:") return;
      if (url.origin !== home.origin) this.#note(`asked another origin: ${url}`);
      if (/token/i.test(url.search)) this.#note(`a token in an address: ${url}`);
    });
    page.on("popup", (popup) => this.#note(`opened ${popup.url()}`));
  }

  /** Takes this for no fault. */
  allow(...patterns: RegExp[]): void {
    this.#allowed.push(...patterns);
  }

  get faults(): string[] {
    return this.seen.filter((text) => !this.#allowed.some((pattern) => pattern.test(text)));
  }

  #note(text: string): void {
    this.seen.push(text);
  }
}

export const test = base.extend<{ watch: Watch }>({
  watch: [
    async ({ page }, use) => {
      const watch = new Watch(page);
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
      });
      await use(watch);
      expect(watch.faults).toEqual([]);
    },
    { auto: true },
  ],
});

/** Keeps every value that a bar of progress shows, from now on and after each load. */
export async function record(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const steps: number[] = [];
    Object.assign(window, { steps });
    const look = () => {
      for (const bar of document.querySelectorAll('[role="progressbar"][aria-valuenow]')) {
        const value = Number(bar.getAttribute("aria-valuenow"));
        if (value > 0 && steps.at(-1) !== value) steps.push(value);
      }
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["aria-valuenow"] });
  });
}

/** What it kept: at least three steps, in their order, or progress was not shown as it was made. */
export async function recorded(page: Page): Promise<void> {
  const steps = await page.evaluate(() => (window as unknown as { steps: number[] }).steps);
  expect(steps.length, `steps that were seen: ${steps.join(" ")}`).toBeGreaterThanOrEqual(3);
  expect(steps).toEqual(steps.toSorted((one, other) => one - other));
}

/** Logs in without the form, and opens a page. */
export async function open(page: Page, gateway: Gateway, path: string): Promise<void> {
  const answer = await page.request.post(`${gateway.origin}/api/session`, {
    data: { token: gateway.token },
    headers: { origin: gateway.origin },
  });
  expect(answer.status()).toBe(200);
  const { page_secret } = (await answer.json()) as { page_secret: string };
  // As the login leaves it behind: once, so that logging out lasts.
  await page.addInitScript((secret) => {
    if (sessionStorage.getItem("opened") === secret) return;
    sessionStorage.setItem("opened", secret);
    sessionStorage.setItem("consort.session", secret);
  }, page_secret);
  await page.goto(gateway.page(path));
}

/** Waits until what a page loads is there. */
export async function settled(page: Page): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
}

/** The main part of a page. */
export function main(page: Page): Locator {
  return page.getByRole("main");
}
