// Light or dark: what the system says, unless a choice was stored.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "consort.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // storage may be closed to us
  }
}

export const theme = signal<Theme>(stored());

export function applyTheme() {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function nextTheme() {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // it then lasts as long as the page
  }
  applyTheme();
}
