// Which tools are meant: all there are, or those that a model sees. Pure.

/** At the endpoint of a profile, or by an exposure; neither is every tool. */
export interface View { profile?: string; exposure?: string }

const PROFILE = "profile:";

/** As it is written in an address: nothing, `profile:NAME`, or an exposure. */
export function readView(text: string): View {
  if (text.startsWith(PROFILE)) return { profile: text.slice(PROFILE.length) };
  return text ? { exposure: text } : {};
}

export function writeView({ profile, exposure }: View): string {
  return profile !== undefined ? PROFILE + profile : exposure ?? "";
}

export interface ViewChoice { value: string; label: string }

export function viewChoices(profiles: string[]): ViewChoice[] {
  return [
    { value: "", label: "All tools" },
    { value: "config", label: "Exposed to models" },
    ...profiles.map((name) => ({ value: writeView({ profile: name }), label: `Exposed to models: profile ${name}` })),
    { value: "per-server", label: "One tool per server" },
    { value: "search", label: "Search: find_tools, call_tool" },
  ];
}
