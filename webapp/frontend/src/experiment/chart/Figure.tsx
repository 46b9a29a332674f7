import { useElementSize } from '@mantine/hooks';
import { useState } from 'react';
import { metricText } from '@/format/metrics';
import { seriesColor } from '@/theme/seriesColors';
import classes from './chart.module.css';
import { FigureLegend } from './FigureLegend';
import type { Placed } from './geometry';
import { HeatMap } from './HeatMap';
import { Marker } from './Marker';
import { type FigureData, type Hidden, NOTHING_HIDDEN } from './model';
import { Plot } from './Plot';
import { xScale, yScale } from './scales';
import { axisTitle, valueText } from './texts';

interface Props {
  data: FigureData;
  /** Digests of the selected points. */
  selected?: ReadonlySet<string>;
  onSelect?: (digests: readonly string[], how: 'toggle' | 'add') => void;
  /** The points of the mark below the pointer or the arrow keys; none if there is no such spot. */
  onHover?: (digests: readonly string[]) => void;
  showsRepeats?: boolean;
  /** Pixels of one panel, axes included: given, so that nothing moves when values arrive. */
  height?: number;
  testId?: string;
}

const TOP = 12;
const BOTTOM = 48;
const LEFT = 78;
const RIGHT = 14;
const NONE: ReadonlySet<string> = new Set();

/** A figure of an experiment: panels with shared axes, a legend, and a tip with the value below the pointer. */
export function Figure({
  data,
  selected = NONE,
  onSelect = () => undefined,
  onHover,
  showsRepeats = false,
  height = 380,
  testId,
}: Props) {
  const { ref, width } = useElementSize();
  const [hidden, setHidden] = useState<Hidden>(NOTHING_HIDDEN);
  const [hover, setHover] = useState<Placed | null>(null);
  const columns = columnsOf(data.panels.length, width);
  const each = Math.max(width / columns - (columns > 1 ? 8 : 0), 120);
  const inner = { width: each - LEFT - RIGHT, height: height - TOP - BOTTOM };
  const formatY = (value: number) => metricText(value, data.y.unit);
  const x = xScale(data, inner.width);
  const y = yScale(data, hidden, inner.height);
  const empty = data.panels.every((panel) =>
    panel.lines.every(({ drawn, spots }) => !drawn || spots.length === 0),
  );
  const shape = {
    data,
    hidden,
    x,
    y,
    ...inner,
    selected,
    onSelect,
    onHover: (placed: Placed | null) => {
      setHover(placed);
      if (placed?.key !== hover?.key) onHover?.(placed?.spot.digests ?? []);
    },
    formatY,
    left: LEFT,
    showsRepeats,
  };
  return (
    <div className={classes.figure} data-testid={testId}>
      <FigureLegend data={data} hidden={hidden} onHidden={setHidden} />
      <div
        ref={ref}
        className={classes.panels}
        style={{ gridTemplateColumns: `repeat(${columns}, 1fr)`, minHeight: height }}
      >
        {width > 0 &&
          !empty &&
          data.panels.map((panel, at) => (
            <div key={panel.label} style={{ position: 'relative', minWidth: 0 }}>
              {data.panels.length > 1 && <p className={classes.panelTitle}>{panel.label}</p>}
              <svg className={classes.svg} width={each} height={height} data-testid="figure-svg">
                <g transform={`translate(${LEFT} ${TOP})`}>
                  {data.kind === 'heatmap' ? (
                    <HeatMap {...shape} panel={at} />
                  ) : (
                    <Plot {...shape} panel={at} yTitle={at % columns === 0 ? axisTitle(data.y) : null} />
                  )}
                </g>
              </svg>
              {hover?.panel === at && <Tip placed={hover} width={each} data={data} formatY={formatY} />}
            </div>
          ))}
        {empty && (
          <div className={classes.none} style={{ height }}>
            No values yet.
          </div>
        )}
      </div>
    </div>
  );
}

function columnsOf(panels: number, width: number): number {
  return Math.max(1, Math.min(panels, Math.floor(width / 340) || 1, 3));
}

interface TipProps {
  placed: Placed;
  width: number;
  data: FigureData;
  formatY: (value: number) => string;
}

function Tip({ placed, width, data, formatY }: TipProps) {
  const { spot, label, source, mark, place, cx, cy } = placed;
  const right = cx + LEFT > width / 2;
  const top = (cy ?? 0) + TOP;
  return (
    <div
      className={classes.tip}
      role="status"
      style={{ top, ...(right ? { right: width - cx - LEFT + 14 } : { left: cx + LEFT + 14 }) }}
      data-testid="figure-tip"
    >
      <b>
        <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden>
          <Marker mark={mark} place={place} color={seriesColor(place)} />
        </svg>
        {label || data.y.title}
        <span style={{ fontWeight: 400 }}>{source}</span>
      </b>
      <div>{valueText(spot, formatY)}</div>
      <small>
        {data.x.title}: {spot.x_label}
      </small>
      {spot.note && <small>{spot.note}</small>}
      {spot.stale && (
        <small className={classes.warn}>Made by another version of the code, or another calibration.</small>
      )}
    </div>
  );
}
