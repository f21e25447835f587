// Words that a server supplied: shown as text, with what would be hidden written out, and cut when very long.
import { useState } from "preact/hooks";
import { bytes, pieces } from "../words";

/** One run of hostile text. */
export function Text({ text }: { text: string }) {
  const found = pieces(text);
  if (found.length === 1 && !found[0]!.hidden) return <>{text}</>;
  return (
    <>
      {found.map((piece) =>
        piece.hidden ? (
          <span class="unseen" title="invisible character">{piece.text}</span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** Text cut at `limit` characters, with a button for more of it. */
export function Long({ text, limit = 600, step }: { text: string; limit?: number; step?: number }) {
  const [shown, show] = useState(limit);
  if (text.length <= shown) return <Text text={text} />;
  const rest = text.length - shown;
  return (
    <>
      <Text text={text.slice(0, shown)} />
      {"… "}
      <button type="button" class="linkish" onClick={() => show(step ? shown + step : text.length)}>
        {step && rest > step ? `show ${bytes(step)} more of ${bytes(rest)}` : `show all (${bytes(rest)} more)`}
      </button>
    </>
  );
}

/** A preformatted block that scrolls by itself; the first 64 KB at once. */
export function Block({ text, label, wrap = true }: { text: string; label?: string; wrap?: boolean }) {
  return (
    <pre class={wrap ? "block wrap" : "block"} tabIndex={0} role="region" aria-label={label ?? "text"}>
      <Long text={text} limit={65_536} step={262_144} />
    </pre>
  );
}
