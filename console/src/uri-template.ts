// URI templates (RFC 6570): which variables they have, and what they become. Pure.

const OPERATORS: Record<string, { first: string; between: string; named: boolean; reserved: boolean }> = {
  "": { first: "", between: ",", named: false, reserved: false },
  "+": { first: "", between: ",", named: false, reserved: true },
  "#": { first: "#", between: ",", named: false, reserved: true },
  ".": { first: ".", between: ".", named: false, reserved: false },
  "/": { first: "/", between: "/", named: false, reserved: false },
  ";": { first: ";", between: ";", named: true, reserved: false },
  "?": { first: "?", between: "&", named: true, reserved: false },
  "&": { first: "&", between: "&", named: true, reserved: false },
};

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

interface Variable { name: string; length?: number }

function variables(list: string): Variable[] {
  return list.split(",").map((each) => {
    const [name = "", length] = each.replace(/\*$/, "").split(":");
    return length ? { name, length: Number(length) } : { name };
  });
}

/** The names of its variables, in order, each once; `required` if the address makes no sense without. */
export function templateVariables(template: string): { name: string; required: boolean }[] {
  const found = new Map<string, boolean>();
  for (const [, operator = "", list = ""] of template.matchAll(EXPRESSION)) {
    for (const { name } of variables(list)) found.set(name, (found.get(name) ?? false) || !"?&;#".includes(operator) || operator === "");
  }
  return [...found].map(([name, required]) => ({ name, required }));
}

/** The address; variables without a value are left out. */
export function expandTemplate(template: string, values: Record<string, string>): string {
  return template.replaceAll(EXPRESSION, (_, operator: string, list: string) => {
    const { first, between, named, reserved } = OPERATORS[operator]!;
    const parts = variables(list).flatMap(({ name, length }) => {
      const value = Object.hasOwn(values, name) ? values[name]! : "";
      if (!value) return [];
      const cut = length === undefined ? value : [...value].slice(0, length).join("");
      return [named ? `${name}=${encode(cut, reserved)}` : encode(cut, reserved)];
    });
    return parts.length ? first + parts.join(between) : "";
  });
}

function encode(text: string, reserved: boolean): string {
  const escape = (each: string) => `%${each.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  const whole = text.replaceAll(/\p{Surrogate}/gu, "\ufffd"); // half a pair cannot be encoded
  if (reserved) return encodeURI(whole).replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll(/%25([0-9A-F]{2})/gi, "%$1");
  return encodeURIComponent(whole).replaceAll(/[!'()*]/g, escape);
}
