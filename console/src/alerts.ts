// Notices of the browser for new questions: only if they were turned on here, and only while the page is not looked at.
import { effect, signal } from "@preact/signals";
import { pendingRequests, watchful } from "./live";
import { plain } from "./words";

const KEY = "consort.alerts";

export function canAlert(): boolean {
  return "Notification" in globalThis && Notification.permission !== "denied";
}

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === "on" && canAlert() && Notification.permission === "granted";
  } catch {
    return false; // storage may be closed to us
  }
}

export const alerts = signal(stored());

/** Asks the browser the first time; a no is taken as one. */
export async function turnAlerts() {
  const on = !alerts.value && (await Notification.requestPermission()) === "granted";
  alerts.value = on;
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    // it then lasts as long as the page
  }
}

export function startAlerts() {
  effect(() => {
    watchful.value = alerts.value;
  });
  const told = new Set<string>();
  effect(() => {
    for (const request of pendingRequests.value) {
      if (told.has(request.id)) continue;
      told.add(request.id);
      if (!alerts.peek() || !document.hidden) continue;
      const notice = new Notification("Consort: approval needed", { body: plain(request.message).slice(0, 160), tag: request.id });
      notice.onclick = () => {
        focus();
        notice.close();
      };
    }
  });
}
