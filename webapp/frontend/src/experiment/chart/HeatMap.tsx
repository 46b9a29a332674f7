import { interpolateRgb } from 'd3-interpolate';
import { scaleBand, scaleSequential, scaleSequentialLog } from 'd3-scale';
import { Axes } from './Axes';
import classes from './chart.module.css';
import type { Placed } from './geometry';
import { shownLines } from './model';
import type { PlotProps } from './Plot';
import { visibleSpots } from './scales';
import { spoken } from './texts';

type Props = Omit<PlotProps, 'yTitle' | 'showsRepeats'>;

/** From pale to deep: one hue, so that more is darker in both colour schemes. */
const PALE = '#e4eef9';
const DEEP = '#1c4a80';

/** A heat map: x against series, the value as the shade of a cell and as its text. Emulated values replace predicted ones. */
export function HeatMap({
  data,
  panel,
  hidden,
  width,
  height,
  selected,
  onSelect,
  onHover,
  formatY,
  left,
}: Props) {
  const shown = shownLines(data.panels[panel]!, data.series, hidden);
  const xs = data.x.categories ?? [];
  const rows = [...new Set(shown.map(({ line }) => line.label))];
  const column = scaleBand<string>().domain(xs).range([0, width]);
  const row = scaleBand<string>().domain(rows).range([0, height]);
  const values = visibleSpots(data, hidden).flatMap(({ y }) => (y === null ? [] : [y]));
  const bounds: [number, number] = [Math.min(...values), Math.max(...values)];
  const shade = (data.y.log && bounds[0] > 0 ? scaleSequentialLog : scaleSequential)(
    bounds,
    interpolateRgb(PALE, DEEP),
  );
  const middle = data.y.log && bounds[0] > 0 ? Math.sqrt(bounds[0] * bounds[1]) : (bounds[0] + bounds[1]) / 2;
  const placed = new Map<string, Placed>();
  for (const { line, place } of shown) {
    for (const spot of line.spots) {
      const key = `${line.label}/${spot.x}`;
      if (placed.has(key) && line.mark !== 'filled') continue;
      placed.set(key, {
        key,
        panel,
        label: line.label,
        source: line.world,
        mark: line.mark,
        place,
        spot,
        cx: (column(String(spot.x)) ?? 0) + column.bandwidth() / 2,
        cy: (row(line.label) ?? 0) + row.bandwidth() / 2,
        box: null,
        low: null,
        high: null,
        leftOut: [],
        width: column.bandwidth(),
      });
    }
  }
  const ticksOf = (items: readonly string[], band: typeof row) =>
    items.map((text) => ({ at: (band(text) ?? 0) + band.bandwidth() / 2, text }));
  return (
    <g role="group" aria-label={`${data.y.title} by ${data.x.title} and series`}>
      <Axes
        x={{ of: () => 0, band: 0, ticks: ticksOf(xs, column) }}
        y={{ of: () => 0, floor: 0, ticks: ticksOf(rows, row) }}
        width={width}
        height={height}
        xTitle={data.x.heading}
        yTitle={null}
        left={left}
      />
      {[...placed.values()].map((one) => {
        const { y: mean, digests, problem, left_out } = one.spot;
        const chosen = digests.length > 0 && digests.every((digest) => selected.has(digest));
        return (
          <g
            key={one.key}
            role="button"
            tabIndex={0}
            aria-pressed={chosen}
            aria-label={spoken(one, data, formatY)}
            data-testid="mark"
            data-source={one.source}
            onPointerEnter={() => onHover(one)}
            onPointerLeave={() => onHover(null)}
            onFocus={() => onHover(one)}
            onBlur={() => onHover(null)}
            onClick={() => onSelect(digests, 'toggle')}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' && event.key !== ' ') return;
              event.preventDefault();
              onSelect(digests, 'toggle');
            }}
          >
            <rect
              className={chosen ? classes.chosen : classes.cell}
              x={one.cx - one.width / 2}
              y={(one.cy ?? 0) - row.bandwidth() / 2}
              width={one.width}
              height={row.bandwidth()}
              style={{ fill: mean === null ? 'var(--loom-sunken)' : shade(mean), cursor: 'pointer' }}
            />
            <text
              className={classes.cellText}
              x={one.cx}
              y={one.cy ?? 0}
              dy="0.34em"
              textAnchor="middle"
              fill={mean === null ? 'var(--loom-dim)' : mean > middle ? '#fff' : '#14202c'}
            >
              {mean === null ? (left_out.length > 0 ? 'not valid' : problem ? 'none' : '…') : formatY(mean)}
            </text>
          </g>
        );
      })}
    </g>
  );
}
