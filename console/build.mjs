// Builds dist/{index.html,app.js,app.css}; `--watch` keeps at it, `--test` bundles and runs the tests.
import { build, context } from "esbuild";
import { copyFile, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";

const here = new URL(".", import.meta.url).pathname;
process.chdir(here);

const app = {
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
};

if (process.argv.includes("--test")) {
  await rm(".test", { recursive: true, force: true });
  const files = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...app,
    entryPoints: files.map((name) => `test/${name}`),
    outdir: ".test",
    outExtension: { ".js": ".mjs" },
    minify: false,
    platform: "node",
  });
  const bundles = files.map((name) => `.test/${name.replace(/\.ts$/, ".mjs")}`);
  const { status } = spawnSync(process.execPath, ["--test", ...bundles], { stdio: "inherit" });
  process.exit(status ?? 1);
}

await mkdir("dist", { recursive: true });
await copyFile("src/index.html", "dist/index.html");

if (process.argv.includes("--watch")) {
  await (await context({ ...app, logLevel: "info" })).watch();
} else {
  await build(app);
  let whole = 0;
  for (const name of ["index.html", "app.css", "app.js"]) {
    const bytes = await readFile(`dist/${name}`);
    const packed = gzipSync(bytes, { level: 9 }).length;
    whole += packed;
    console.log(`${name.padEnd(11)}${String(bytes.length).padStart(8)} bytes ${String(packed).padStart(7)} gzip`);
  }
  console.log(`${"together".padEnd(11)}${"".padStart(14)} ${String(whole).padStart(7)} gzip`);
  if (whole > 150_000) throw new Error("the console is over its limit of 150 KB");
}
