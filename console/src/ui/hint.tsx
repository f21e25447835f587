// Our own messages: what is in backticks is set as code.
import { Text } from "./text";

export function Hint({ text }: { text: string }) {
  const parts = text.split("`");
  // An odd backtick is a backtick.
  if (parts.length % 2 === 0) return <Text text={text} />;
  return <>{parts.map((part, at) => (at % 2 ? <code><Text text={part} /></code> : <Text text={part} />))}</>;
}
