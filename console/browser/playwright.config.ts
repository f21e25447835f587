// How the console is driven: Debian's Chromium, the real binary, no retries.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  outputDir: process.env.PLAYWRIGHT_OUTPUT,
  fullyParallel: false,
  workers: 2,
  retries: 0,
  forbidOnly: true,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [["list"]],
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      // The sandbox of the browser does not work for root.
      // In a container there may be hardly any shared memory.
      args: ["--disable-dev-shm-usage", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
    },
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    reducedMotion: "reduce",
    trace: "retain-on-failure",
    actionTimeout: 30_000,
  },
  projects: [
    { name: "test", testMatch: "*.spec.ts" },
    { name: "bench", testMatch: "bench.ts", timeout: 300_000, workers: 1 },
    { name: "shots", testMatch: "shots.ts", timeout: 300_000, workers: 1 },
  ],
});
