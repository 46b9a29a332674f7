import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useCanvasColors, type CanvasColors } from './colors';
import classes from './charts.module.css';

interface Line {
  label: string;
  color: string;
}

interface Props {
  /** x first, then one array per line; null is a gap. */
  data: uPlot.AlignedData;
  /** Must stay the same array while the lines are the same: a new array creates a new chart. */
  lines: Line[];
  xLabel: string;
  formatX: (x: number) => string;
  formatY: (y: number) => string;
  /** The lines that stand out, by their places; without any all are alike. */
  lit?: readonly number[];
  /** Moments (in x) with a vertical line. */
  marks?: readonly { time_s: number }[];
  height?: number;
  label: string;
  testId?: string;
}

/** Lines over time or tokens (uPlot). New data replaces the arrays of the chart. */
export function LineChart({
  data,
  lines,
  xLabel,
  formatX,
  formatY,
  lit,
  marks,
  height = 190,
  label,
  testId,
}: Props) {
  const { ref: box, width } = useElementSize();
  const holder = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ data, marks, lit });
  const colors = useCanvasColors();

  useEffect(() => {
    latest.current = { ...latest.current, data, marks };
    plot.current?.setData(data);
  }, [data, marks]);

  useEffect(() => {
    if (!holder.current || width === 0) return;
    const showText = (text: string) => {
      if (tip.current) tip.current.textContent = text;
    };
    const options = optionsOf({
      lines,
      colors,
      xLabel,
      formatX,
      formatY,
      marks: () => latest.current.marks ?? [],
      showText,
    });
    const made = new uPlot({ ...options, width, height }, latest.current.data, holder.current);
    plot.current = made;
    fade(made, latest.current.lit);
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [lines, colors, xLabel, formatX, formatY, width, height]);

  useEffect(() => {
    latest.current = { ...latest.current, lit };
    if (plot.current) fade(plot.current, lit);
  }, [lit]);

  return (
    <div ref={box} className={classes.line} role="img" aria-label={label} data-testid={testId}>
      <div ref={holder} />
      {lines.length === 1 && <div ref={tip} className={classes.tip} />}
    </div>
  );
}

/** Opacity of a line while others stand out. */
const FADED = 0.15;

interface Look extends Pick<Props, 'lines' | 'xLabel' | 'formatX' | 'formatY'> {
  colors: CanvasColors;
  marks: () => readonly { time_s: number }[];
  showText: (text: string) => void;
}

function optionsOf({
  lines,
  colors,
  xLabel,
  formatX,
  formatY,
  marks,
  showText,
}: Look): Omit<uPlot.Options, 'width' | 'height'> {
  const axis = {
    stroke: colors.dim,
    grid: { stroke: colors.line, width: 1 },
    ticks: { show: false },
    font: colors.smallFont,
  };
  return {
    scales: { x: { time: false }, y: { range: (_, __, max) => [0, (max || 1) * 1.12] } },
    cursor: { y: false, points: { size: 7 } },
    legend: { show: lines.length > 1 },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => formatX(tick)) },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => formatY(tick)) },
    ],
    series: [
      { label: xLabel, value: (_, x) => (x === null ? '–' : formatX(x)) },
      ...lines.map((line): uPlot.Series => ({
        label: line.label,
        stroke: line.color,
        width: 1.75,
        spanGaps: true,
        points: { show: (chart) => chart.data[0].length < 80, size: 5, fill: line.color },
        value: (_, y) => (y === null ? '–' : formatY(y)),
      })),
    ],
    hooks: {
      draw: [(chart) => drawMarks(chart, marks(), colors.injection)],
      setCursor: [(chart) => showText(cursorText(chart, formatX, formatY, lines))],
    },
  };
}

function fade(chart: uPlot, lit: readonly number[] | undefined): void {
  chart.series.forEach((line, at) => {
    line.alpha = lit && lit.length > 0 && !lit.includes(at - 1) ? FADED : 1;
  });
  chart.redraw(false, false);
}

function cursorText(
  chart: uPlot,
  formatX: (x: number) => string,
  formatY: (y: number) => string,
  lines: Line[],
): string {
  const at = chart.cursor.idx;
  const x = at === null || at === undefined ? undefined : chart.data[0][at];
  const y = at === null || at === undefined ? undefined : chart.data[1]?.[at];
  return x === undefined || y === undefined || y === null
    ? ''
    : `${lines[0]?.label ?? ''} ${formatY(y)} at ${formatX(x)}`;
}

function drawMarks(chart: uPlot, marks: readonly { time_s: number }[], color: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = window.devicePixelRatio || 1;
  ctx.setLineDash([5, 4]);
  for (const mark of marks) {
    const x = Math.round(chart.valToPos(mark.time_s, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
