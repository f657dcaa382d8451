/** A line plot over time. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  readonly label: string;
  readonly color: string;
  readonly values: ReadonlyArray<number | null>;
}
export interface PlotProps {
  readonly title: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const HEIGHT = 130;

export function Plot({ title, times, lines, format }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const labels = lines.map((line) => line.label).join("\n");
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const ink = getComputedStyle(box).color;
    const grid = { stroke: "rgba(128,128,128,.2)", width: 1 };
    const made = new uPlot(
      {
        width: box.clientWidth || 300,
        height: HEIGHT,
        cursor: { show: true, drag: { x: false, y: false } },
        legend: { show: false },
        axes: [
          { stroke: ink, grid, size: 28 },
          { stroke: ink, grid, size: 64, values: (_, ticks) => ticks.map(format) },
        ],
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(high || 0, 1e-6) * 1.1] } },
        series: [{}, ...lines.map((line) => ({ label: line.label, stroke: line.color, width: 2, points: { show: false } }))],
      },
      dataOf(times, lines),
      box,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [labels]);
  useEffect(() => plot.current?.setData(dataOf(times, lines)));
  const last = lines.map((line) => ({ ...line, value: line.values.at(-1) ?? null }));
  return (
    <figure class="plot">
      <figcaption>
        <span>{title}</span>
        {last.map((line) => (
          <span key={line.label} class="legend">
            <i style={{ background: line.color }} aria-hidden="true" />
            {line.label} <b>{line.value === null ? "–" : format(line.value)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [[...times], ...lines.map((line) => [...line.values])] as uPlot.AlignedData;
}
