/** What a figure draws below its marks: lines, bars and boxes with their intervals, and single repeats. */
import { seriesColor } from '@/theme/seriesColors';
import classes from './chart.module.css';
import { bandPath, linePath, segments, type Placed } from './geometry';
import { DASHES, type FigureData } from './model';
import type { YScale } from './scales';

const WIDEST_BOX_PX = 70;

export function Lines({ placed, kind }: { placed: readonly Placed[]; kind: FigureData['kind'] }) {
  return (
    <g aria-hidden>
      {segments(placed).map((segment) => {
        const { key, place, source, mark } = segment[0]!;
        const color = seriesColor(place);
        return (
          <g key={key}>
            {kind === 'lines' && (
              <>
                <path className={classes.band} d={bandPath(segment)} fill={color} />
                <path
                  className={classes.line}
                  d={linePath(segment)}
                  stroke={color}
                  data-source={source}
                  strokeDasharray={DASHES[mark]}
                />
              </>
            )}
          </g>
        );
      })}
      <Intervals placed={placed} />
    </g>
  );
}

/** Intervals of marks; `over`: they lie over bars of the same colour. */
function Intervals({ placed, over = false }: { placed: readonly Placed[]; over?: boolean }) {
  return placed.map(({ key, cx, low, high, place }) =>
    low === null || high === null ? null : (
      <path
        key={key}
        className={classes.interval}
        stroke={over ? 'var(--loom-text)' : seriesColor(place)}
        d={`M${cx} ${low}V${high}M${cx - 4} ${low}h8M${cx - 4} ${high}h8`}
      />
    ),
  );
}

export function Bars({ placed, y }: { placed: readonly Placed[]; y: YScale }) {
  const base = y.of(y.floor);
  return (
    <g aria-hidden>
      {placed
        .filter(({ mark, cy }) => mark !== 'published' && cy !== null)
        .toSorted((a, b) => Number(a.mark !== 'filled') - Number(b.mark !== 'filled'))
        .map(({ key, cx, cy, width, place, mark }) => (
          <rect
            key={key}
            x={cx - width / 2}
            width={Math.max(width, 1)}
            y={Math.min(cy ?? base, base)}
            height={Math.abs(base - (cy ?? base))}
            stroke={seriesColor(place)}
            strokeWidth={1.6}
            strokeDasharray={DASHES[mark]}
            fill={mark === 'filled' ? seriesColor(place) : 'none'}
            fillOpacity={0.85}
          />
        ))}
      <Intervals placed={placed} over />
    </g>
  );
}

/** Whiskers from the least to the most value, boxes of the middle half, and a line at the median. */
export function Boxes({ placed }: { placed: readonly Placed[] }) {
  return (
    <g aria-hidden data-testid="boxes">
      {placed.map(({ key, cx, width, place, mark, box }) => {
        if (!box) return null;
        const half = Math.min(width, WIDEST_BOX_PX) / 2;
        return (
          <g key={key} stroke={seriesColor(place)} fill="none" strokeWidth={1.6}>
            <path d={`M${cx} ${box.least}V${box.lower}M${cx} ${box.upper}V${box.most}`} />
            <path d={`M${cx - half / 2} ${box.least}h${half}M${cx - half / 2} ${box.most}h${half}`} />
            <rect
              x={cx - half}
              width={2 * half}
              y={box.upper}
              height={Math.max(box.lower - box.upper, 0)}
              fill={seriesColor(place)}
              fillOpacity={mark === 'filled' ? 0.35 : 0.1}
              strokeDasharray={DASHES[mark]}
            />
            <path d={`M${cx - half} ${box.median}h${2 * half}`} strokeWidth={2.6} />
          </g>
        );
      })}
    </g>
  );
}

/** The single repeats behind each mean. */
export function Repeats({ placed, y, over }: { placed: readonly Placed[]; y: YScale; over: boolean }) {
  return (
    <g aria-hidden data-testid="repeats">
      {placed.flatMap(({ key, cx, place, spot }) =>
        spot.repeats.length < 2
          ? []
          : spot.repeats.map(({ value, digest }) => (
              <circle
                key={`${key}/${digest}`}
                cx={cx}
                cy={y.of(value)}
                r={2}
                fill={over ? 'var(--loom-text)' : seriesColor(place)}
                opacity={0.6}
              />
            )),
      )}
    </g>
  );
}
