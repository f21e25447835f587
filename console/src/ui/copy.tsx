// Copying, and a block of text made for it.
import { useState } from "preact/hooks";
import { Button } from "./button";

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      say("Copied");
    } catch {
      say("Not allowed"); // the clipboard needs https or localhost
    }
    setTimeout(() => say(""), 1500);
  };
  return (
    <Button kind="quiet" small icon={said === "Copied" ? "check" : "copy"} onClick={copy}>
      <span aria-live="polite">{said || label}</span>
    </Button>
  );
}

export function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <div class="snippet">
      <pre tabIndex={0} role="region" aria-label={label}>{text}</pre>
      <Copy text={text} />
    </div>
  );
}
