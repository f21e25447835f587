// A sparkline: the last values, without axes, with its range in words for those who do not see it.
export function Spark({ values, width = 96, height = 24, label }: { values: number[]; width?: number; height?: number; label: string }) {
  const top = Math.max(...values, 1);
  const step = values.length > 1 ? (width - 4) / (values.length - 1) : 0;
  const points = values.map((value, at) => `${(2 + at * step).toFixed(1)},${(height - 3 - (value / top) * (height - 6)).toFixed(1)}`);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {points.length > 1 ? <polyline points={points.join(" ")} /> : <line x1={2} x2={width - 2} y1={height - 3} y2={height - 3} class="none" />}
      {points.length > 0 && <circle cx={points.at(-1)!.split(",")[0]} cy={points.at(-1)!.split(",")[1]} r={2} />}
    </svg>
  );
}
