// Small charts over time: bars or lines on a common scale, values under the pointer, and the same as a table.
import { useEffect, useRef, useState } from "preact/hooks";
import { nice } from "../calls/scale";

export interface Series {
  name: string;
  tone: "accent" | "bad" | "dim";
  values: (number | undefined)[];
}

interface ChartProps {
  title: string;
  kind: "bars" | "lines";
  series: Series[];
  /** The time of a point, in words. */
  at: (index: number) => string;
  /** A value in words. */
  say: (value: number) => string;
  /** What there is to say without seeing it. */
  summary: string;
}

const HEIGHT = 112;
const LEFT = 52;
const FOOT = 18;

function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, set] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && set(Math.round(entry.contentRect.width)));
    watch.observe(element.current!);
    return () => watch.disconnect();
  }, []);
  return [element, width] as const;
}

export function Chart({ title, kind, series, at, say, summary }: ChartProps) {
  const [element, width] = useWidth();
  const [over, setOver] = useState<number | undefined>(undefined);
  const points = series[0]?.values.length ?? 0;
  const most = Math.max(0, ...series.flatMap((one) => one.values.map((value) => value ?? 0)));
  const top = nice(most);
  // Bars count things: there is no half of one.
  const ticks = !most ? [0] : kind === "bars" && top < 2 ? [0, top] : [0, top / 2, top];
  const step = points ? (width - LEFT - 4) / points : 0;
  const x = (index: number) => LEFT + index * step;
  const y = (value: number) => 8 + (1 - value / top) * (HEIGHT - 8 - FOOT);
  const point = (event: PointerEvent) => {
    const index = Math.floor((event.clientX - element.current!.getBoundingClientRect().left - LEFT) / step);
    setOver(index >= 0 && index < points ? index : undefined);
  };
  return (
    <figure class="chart card">
      <figcaption>
        <h2>{title}</h2>
        <p class="chart-legend small">
          {over !== undefined && <span class="dim">{at(over)}</span>}
          {series.map((one) => {
            const value = over === undefined ? undefined : one.values[over];
            return <span key={one.name} class={`key ${one.tone}`}><i aria-hidden="true" />{one.name}{over !== undefined && <b class="number">{value === undefined ? "–" : say(value)}</b>}</span>;
          })}
        </p>
      </figcaption>
      <div ref={element} class="chart-room" onPointerMove={point} onPointerLeave={() => setOver(undefined)}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={`${title}: ${summary}`}>
            {ticks.map((value) => (
              <g key={value}>
                <line class="grid" x1={LEFT} x2={width} y1={y(value)} y2={y(value)} />
                <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">{say(value)}</text>
              </g>
            ))}
            {over !== undefined && <rect class="over" x={x(over)} width={Math.max(1, step)} y={8} height={HEIGHT - 8 - FOOT} />}
            {series.map((one) => kind === "bars"
              ? <path key={one.name} class={`bars ${one.tone}`} d={bars(one.values, x, y, step)} />
              : <path key={one.name} class={`line ${one.tone}`} d={line(one.values, (index) => x(index) + step / 2, y)} />)}
            {points > 0 && <text x={LEFT} y={HEIGHT - 3}>{at(0)}</text>}
            {points > 0 && <text x={width - 4} y={HEIGHT - 3} text-anchor="end">{at(points - 1)}</text>}
          </svg>
        )}
      </div>
      <details>
        <summary class="small dim">As a table</summary>
        <div class="chart-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
          <table>
            <thead><tr><th scope="col">time</th>{series.map((one) => <th scope="col" key={one.name}>{one.name}</th>)}</tr></thead>
            <tbody>
              {Array.from({ length: points }, (_, index) => points - 1 - index).map((index) => (
                <tr key={index}><th scope="row">{at(index)}</th>{series.map((one) => <td key={one.name}>{one.values[index] === undefined ? "–" : say(one.values[index])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function bars(values: (number | undefined)[], x: (index: number) => number, y: (value: number) => number, step: number): string {
  const wide = Math.max(1, step - Math.min(2, step / 4)).toFixed(1);
  return values.map((value, index) => (value ? `M${x(index).toFixed(1)} ${y(0)}V${y(value).toFixed(1)}h${wide}V${y(0)}z` : "")).join("");
}

/** A line that is broken where there is no value; a value alone is a dash. */
function line(values: (number | undefined)[], x: (index: number) => number, y: (value: number) => number): string {
  return values.map((value, index) => {
    if (value === undefined) return "";
    const before = values[index - 1] !== undefined;
    if (!before && values[index + 1] === undefined) return `M${(x(index) - 2).toFixed(1)} ${y(value).toFixed(1)}h4`;
    return `${before ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
}
