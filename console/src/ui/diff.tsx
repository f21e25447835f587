// A readable difference, line by line; signs as well as colours.
import { Text } from "./text";

export interface DiffLine { sign: " " | "+" | "-"; text: string }

const WORDS = { "+": "added: ", "-": "removed: ", " ": "" };

export function Diff({ lines, label }: { lines: DiffLine[]; label: string }) {
  return (
    <div class="diff" role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, at) => (
        <div key={at} class={line.sign === "+" ? "plus" : line.sign === "-" ? "minus" : undefined}>
          <span aria-hidden="true" class="sign">{line.sign}</span>
          <span class="sr">{WORDS[line.sign]}</span>
          <span class="line"><Text text={line.text} /></span>
        </div>
      ))}
    </div>
  );
}
