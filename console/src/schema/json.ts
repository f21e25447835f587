// Reading JSON that a person typed: where it is broken, in the same words in every browser. Pure.

export type Read = { value: unknown } | { error: string; line: number; column: number };

export function readJson(text: string): Read {
  try {
    return { value: JSON.parse(text) };
  } catch {
    const { at, expected } = broken(text);
    const before = text.slice(0, at).split("\n");
    const found = at >= text.length ? "the end" : JSON.stringify([...text.slice(at)][0]);
    return { error: `expected ${expected}, found ${found}`, line: before.length, column: before.at(-1)!.length + 1 };
  }
}

class Stop {
  constructor(readonly at: number, readonly expected: string) {}
}

/** Where a text that is not JSON stops being it. */
function broken(text: string): { at: number; expected: string } {
  let at = 0;
  const space = () => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++;
  };
  const need = (character: string, expected: string) => {
    if (text[at] !== character) throw new Stop(at, expected);
    at++;
  };
  const string = (expected: string) => {
    need('"', expected);
    for (;;) {
      const rest = /^(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/.exec(text.slice(at, at + 4096))![0];
      at += rest.length;
      if (text[at] === '"') break;
      if (!rest.length || at >= text.length) throw new Stop(at, text[at] === "\\" ? "an escape such as \\n or \\\\" : 'a closing "');
    }
    at++;
  };
  const members = (close: string, one: () => void) => {
    at++;
    space();
    if (text[at] === close) {
      at++;
      return;
    }
    for (;;) {
      one();
      space();
      if (text[at] === close) {
        at++;
        return;
      }
      need(",", `, or ${close}`);
      space();
    }
  };
  const value = (depth: number) => {
    space();
    if (depth > 500) throw new Stop(at, "less depth");
    const first = text[at];
    if (first === "{") {
      members("}", () => {
        string('a name in "quotes"');
        space();
        need(":", ":");
        value(depth + 1);
      });
    } else if (first === "[") members("]", () => value(depth + 1));
    else if (first === '"') string("text");
    else {
      const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(text.slice(at, at + 400));
      if (!word) throw new Stop(at, "a value");
      at += word[0].length;
    }
  };
  try {
    value(0);
    space();
    return { at, expected: "nothing more" };
  } catch (error) {
    if (error instanceof Stop) return error;
    throw error;
  }
}
