// A short notice at the foot of the page that goes by itself; read out by screen readers.
import { signal } from "@preact/signals";

interface Notice { id: number; text: string }

const notices = signal<Notice[]>([]);
let last = 0;

/** How long a notice stays. */
const STAYS = 5000;

export function say(text: string) {
  const id = ++last;
  notices.value = [...notices.value.slice(-2), { id, text }];
  setTimeout(() => {
    notices.value = notices.value.filter((notice) => notice.id !== id);
  }, STAYS);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-label="Notices">
      {notices.value.map((notice) => <p key={notice.id}>{notice.text}</p>)}
    </div>
  );
}
