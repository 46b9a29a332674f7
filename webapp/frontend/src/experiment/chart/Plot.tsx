import { useId, useState, type KeyboardEvent, type MouseEvent, type PointerEvent } from 'react';
import { seriesColor } from '@/theme/seriesColors';
import { Axes } from './Axes';
import classes from './chart.module.css';
import { inside, nearest, placeSpots, stepFrom, type Box, type Placed, type Step } from './geometry';
import { Bars, Boxes, Lines, Repeats } from './layers';
import { Crossed, Marker } from './Marker';
import { isBanded, type FigureData, type Hidden } from './model';
import type { XScale, YScale } from './scales';
import { axisTitle, spoken } from './texts';

export interface PlotProps {
  data: FigureData;
  panel: number;
  hidden: Hidden;
  x: XScale;
  y: YScale;
  width: number;
  height: number;
  showsRepeats: boolean;
  selected: ReadonlySet<string>;
  onSelect: (digests: readonly string[], how: 'toggle' | 'add') => void;
  onHover: (placed: Placed | null) => void;
  yTitle: string | null;
  left: number;
  formatY: (value: number) => string;
}

const KEYS: Record<string, Step> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
  Home: 'first',
  End: 'last',
};
const DRAG_PX = 5;
/** A bar that is narrower has no room for the shape of its series. */
const SHAPE_PX = 14;

/** One panel as SVG: lines or bars with their intervals, and marks that mouse and arrow keys can select. */
export function Plot(props: PlotProps) {
  const { data, panel, hidden, x, y, width, height, selected, onSelect, onHover, formatY } = props;
  const id = useId();
  const [active, setActive] = useState<string | null>(null);
  const placed = placeSpots(data, panel, hidden, props);
  const current = placed.find((one) => one.key === active) ?? null;
  const drag = useBox(placed, onSelect);
  const go = (key: string | null) => {
    setActive(key);
    onHover(placed.find((one) => one.key === key) ?? null);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = KEYS[event.key];
    if (step) go(stepFrom(placed, active, step));
    else if (event.key === 'Escape') go(null);
    else if ((event.key === ' ' || event.key === 'Enter') && current)
      onSelect(current.spot.digests, 'toggle');
    else return;
    event.preventDefault();
  };
  return (
    <g
      role="listbox"
      aria-multiselectable
      aria-label={data.panels[panel]?.label || `${data.y.title} by ${data.x.title}`}
      aria-activedescendant={current ? `${id}-${current.key}` : undefined}
      tabIndex={0}
      className={classes.plot}
      onKeyDown={onKey}
      onBlur={() => go(null)}
      {...drag.handlers}
      onPointerMove={(event) => {
        drag.handlers.onPointerMove(event);
        const { x: px, y: py } = positionOf(event);
        onHover(drag.box ? null : nearest(placed, px, py, height));
      }}
      onPointerLeave={() => onHover(current)}
      onClick={(event) => {
        if (drag.dragged()) return;
        const { x: px, y: py } = positionOf(event);
        const one = nearest(placed, px, py, height);
        if (one && one.spot.digests.length > 0) onSelect(one.spot.digests, 'toggle');
      }}
    >
      <rect className={classes.area} width={width} height={height} />
      <Axes
        x={x}
        y={y}
        width={width}
        height={height}
        xTitle={axisTitle(data.x)}
        yTitle={props.yTitle}
        left={props.left}
      />
      {data.kind === 'bars' && <Bars placed={placed} y={y} />}
      {data.kind === 'boxes' && <Boxes placed={placed} />}
      {!isBanded(data.kind) && <Lines placed={placed} kind={data.kind} />}
      {props.showsRepeats && <Repeats placed={placed} y={y} over={isBanded(data.kind)} />}
      {placed.map((one) => (
        <g
          key={one.key}
          id={`${id}-${one.key}`}
          role="option"
          aria-selected={isChosen(one, selected)}
          aria-label={spoken(one, data, formatY)}
          data-testid="mark"
          data-source={one.source}
          data-series={one.label}
          data-x={one.spot.x}
        >
          <MarkOf
            one={one}
            banded={isBanded(data.kind)}
            named={data.series.length > 1}
            height={height}
            chosen={isChosen(one, selected)}
            active={one === current}
          />
        </g>
      ))}
      {drag.box && (
        <rect
          className={classes.box}
          x={Math.min(drag.box.x0, drag.box.x1)}
          y={Math.min(drag.box.y0, drag.box.y1)}
          width={Math.abs(drag.box.x1 - drag.box.x0)}
          height={Math.abs(drag.box.y1 - drag.box.y0)}
        />
      )}
    </g>
  );
}

function isChosen(one: Placed, selected: ReadonlySet<string>): boolean {
  return one.spot.digests.length > 0 && one.spot.digests.every((digest) => selected.has(digest));
}

interface MarkOfProps {
  one: Placed;
  banded: boolean;
  /** Whether the series is told by its shape, too. */
  named: boolean;
  height: number;
  chosen: boolean;
  active: boolean;
}

/** The marker with a larger area that reacts to the mouse; a cell without a value is a small sign on the axis. */
function MarkOf({ one, banded, named, height, chosen, active }: MarkOfProps) {
  const color = seriesColor(one.place);
  const cy = one.cy ?? one.leftOut[0] ?? height - 7;
  const crossed = one.leftOut.map((y) => <Crossed key={y} color={color} x={one.cx} y={y} />);
  const ring = (chosen || active) && (
    <circle className={active ? classes.active : classes.chosen} cx={one.cx} cy={cy} r={9.5} />
  );
  if (one.cy === null) {
    return (
      <>
        {ring}
        {crossed.length > 0 ? (
          crossed
        ) : (
          <path d={`M${one.cx - 3.5} ${cy}h7`} stroke={color} strokeWidth={2.4} />
        )}
        <circle className={classes.hit} cx={one.cx} cy={cy} r={6} />
      </>
    );
  }
  const asBar = banded && one.mark !== 'published';
  return (
    <>
      {ring}
      {crossed}
      {!asBar && <Marker mark={one.mark} place={one.place} color={color} x={one.cx} y={cy} />}
      {asBar && named && one.width >= SHAPE_PX && (
        <Marker mark="hollow" place={one.place} color={color} x={one.cx} y={height - 9} />
      )}
      {one.spot.stale && <circle className={classes.stale} cx={one.cx + 6} cy={cy - 6} r={2.4} />}
      {asBar ? (
        <rect
          className={classes.hit}
          x={one.cx - one.width / 2}
          width={Math.max(one.width, 1)}
          y={cy}
          height={Math.max(height - cy, 0)}
        />
      ) : (
        <circle className={classes.hit} cx={one.cx} cy={cy} r={6} />
      )}
    </>
  );
}

/** Where an event is, in pixels of the plot. */
function positionOf(event: MouseEvent<SVGGElement>): { x: number; y: number } {
  const matrix = event.currentTarget.getScreenCTM()?.inverse();
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
  return { x, y };
}

/** Lets a person select by drawing a box; `dragged` says whether the click that follows belongs to a box. */
function useBox(placed: readonly Placed[], onSelect: PlotProps['onSelect']) {
  const [box, setBox] = useState<Box | null>(null);
  const [last, setLast] = useState(false);
  const isLarge = ({ x0, y0, x1, y1 }: Box) => Math.hypot(x1 - x0, y1 - y0) > DRAG_PX;
  return {
    box: box && isLarge(box) ? box : null,
    dragged: () => last,
    handlers: {
      onPointerDown: (event: PointerEvent<SVGGElement>) => {
        if (event.button !== 0 || event.pointerType === 'touch') return;
        const { x, y } = positionOf(event);
        setLast(false);
        setBox({ x0: x, y0: y, x1: x, y1: y });
      },
      onPointerMove: (event: PointerEvent<SVGGElement>) => {
        if (!box) return;
        const { x, y } = positionOf(event);
        const next = { ...box, x1: x, y1: y };
        // Only a drag captures the pointer: a captured click would not reach the mark below it.
        if (isLarge(next)) event.currentTarget.setPointerCapture(event.pointerId);
        setBox(next);
      },
      onPointerUp: () => {
        if (box && isLarge(box)) {
          onSelect([...new Set(inside(placed, box).flatMap((one) => one.spot.digests))], 'add');
          setLast(true);
        }
        setBox(null);
      },
    },
  };
}
