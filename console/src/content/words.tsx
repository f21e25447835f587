// A text of a result: as Markdown or as a tree where it is one, always also as it is.
import { useMemo, useState } from "preact/hooks";
import { Block } from "../ui/text";
import { Copy } from "../ui/copy";
import { Markdown } from "./markdown";
import { looksLikeMarkdown } from "./parse-markdown";
import { Structure } from "./structure";

/** Longer texts are not laid out unasked. */
const LAID_OUT = 65_536;

export function Words({ text, mime }: { text: string; mime?: string }) {
  const kind = useMemo(() => kindOf(text, mime), [text, mime]);
  const [plain, setPlain] = useState(false);
  const other = kind.name === "plain" ? undefined : kind.name;
  return (
    <div class={other ? "words" : "words bare"}>
      <div class="row end words-tools">
        {other && (
          <div class="switch" role="group" aria-label="View">
            <button type="button" aria-pressed={!plain} onClick={() => setPlain(false)}>{other === "tree" ? "Tree" : "Formatted"}</button>
            <button type="button" aria-pressed={plain} onClick={() => setPlain(true)}>Plain</button>
          </div>
        )}
        <Copy text={text} />
      </div>
      {!plain && kind.name === "markdown" ? <Markdown text={text} /> : !plain && kind.name === "tree" ? <Structure value={kind.value} /> : <Block text={text} label="result as text" />}
    </div>
  );
}

type Kind = { name: "plain" } | { name: "markdown" } | { name: "tree"; value: unknown };

function kindOf(text: string, mime = ""): Kind {
  if (text.length < 2_000_000 && (/[/+]json\b/.test(mime) || /^\s*[[{]/.test(text))) {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null) return { name: "tree", value };
    } catch {
      // then it only looks like it
    }
  }
  if (text.length > LAID_OUT) return { name: "plain" };
  if (/markdown/.test(mime) || (!/^text\/(?!plain)/.test(mime) && looksLikeMarkdown(text))) return { name: "markdown" };
  return { name: "plain" };
}
