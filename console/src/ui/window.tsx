// A long list of which only what can be seen is in the page.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

const AROUND = 6;

export interface WindowProps {
  count: number;
  /** Of the row, in pixels; fixed, so that nothing moves. */
  height: (at: number) => number;
  row: (at: number) => ComponentChildren;
  id: string;
  label: string;
  /** The row that keys are at; kept in view. */
  active: number;
  /** Changes when the list became another one: it then starts at its top. */
  about: string;
  onKeyDown?: (event: KeyboardEvent) => void;
}

export function WindowList({ count, height, row, id, label, active, about, onKeyDown }: WindowProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, tall: 800 });
  const tops = useMemo(() => {
    const sums = new Float64Array(count + 1);
    for (let at = 0; at < count; at++) sums[at + 1] = sums[at]! + height(at);
    return sums;
  }, [count, height]);

  useLayoutEffect(() => {
    const element = box.current!;
    const look = () => setView({ top: element.scrollTop, tall: element.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  useLayoutEffect(() => {
    box.current!.scrollTop = 0;
  }, [about]);
  useEffect(() => {
    const element = box.current!;
    if (active < 0 || active >= count) return;
    const [top, bottom] = [tops[active]!, tops[active + 1]!];
    if (top < element.scrollTop) element.scrollTop = top - height(0);
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [active, tops]);

  const first = Math.max(0, below(tops, view.top) - AROUND);
  const last = Math.min(count, below(tops, view.top + view.tall) + 1 + AROUND);
  const rows: ComponentChildren[] = [];
  for (let at = first; at < last; at++) rows.push(row(at));
  return (
    <div class="window" ref={box} id={id} role="listbox" aria-label={label} tabIndex={0} aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined} onKeyDown={onKeyDown}>
      <div role="presentation" style={{ height: `${tops[count]}px` }}>
        <div role="presentation" style={{ transform: `translateY(${tops[first]}px)` }}>{rows}</div>
      </div>
    </div>
  );
}

/** The row in which a height lies. */
function below(tops: Float64Array, y: number): number {
  let [low, high] = [0, tops.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= y) low = middle;
    else high = middle - 1;
  }
  return Math.min(low, tops.length - 1);
}
