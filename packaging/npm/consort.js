#!/usr/bin/env node
// Starts the binary of the platform package with the same arguments, streams and signals, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;

function findBinary() {
  try {
    return require.resolve(`@consort-mcp/${platform}/bin/consort`);
  } catch {
    console.error(`error: no binary of consort for ${platform}: the package \`@consort-mcp/${platform}\` is not installed`);
    const elsewhere = process.platform === "win32" ? "on Windows, install it in WSL" : "on another platform, build it from source";
    console.error(`hint: install consort-mcp without \`--omit=optional\`; ${elsewhere}`);
    process.exit(1);
  }
}

const child = spawn(findBinary(), process.argv.slice(2), { stdio: "inherit" });

// A terminal signals both processes; other senders know only this one.
const signals = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => {
    const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
    if (terminal && signal !== "SIGTERM") return;
    child.kill(signal);
  });
}

child.on("error", (error) => {
  console.error(`error: cannot start ${child.spawnfile}: ${error.message}`);
  process.exit(1);
});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const handled of signals) process.removeAllListeners(handled);
  process.kill(process.pid, signal);
});
