// The pages: their names, in order, and the key after `g` that goes there.
export const PAGES = [
  { name: "servers", label: "Servers", key: "s", first: true },
  { name: "tools", label: "Tools", key: "t", first: true },
  { name: "prompts", label: "Prompts", key: "p", first: false },
  { name: "resources", label: "Resources", key: "r", first: false },
  { name: "calls", label: "Calls", key: "c", first: true },
  { name: "chat", label: "Chat", key: "h", first: false },
  { name: "approvals", label: "Approvals", key: "a", first: true },
  { name: "profiles", label: "Profiles", key: "f", first: false },
  { name: "pins", label: "Pins", key: "i", first: false },
  { name: "connect", label: "Connect", key: "n", first: false },
] as const;

export type PageName = (typeof PAGES)[number]["name"];
