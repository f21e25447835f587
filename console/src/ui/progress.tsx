// How far something is; without a total it only says that it goes on.
export function Progress({ value, total, message, label = "Progress" }: { value: number; total?: number; message?: string; label?: string }) {
  const known = total !== undefined && total > 0;
  const share = known ? Math.min(1, Math.max(0, value / total)) : 0;
  return (
    <div class="progress">
      <div class={known ? "bar" : "bar unknown"} role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={known ? total : undefined} aria-valuenow={known ? value : undefined}>
        <div style={{ transform: known ? `scaleX(${share})` : "" }} />
      </div>
      <span class="progress-words">{known ? `${Math.round(share * 100)} %` : value ? String(value) : ""}{message ? ` ${message}` : ""}</span>
    </div>
  );
}
