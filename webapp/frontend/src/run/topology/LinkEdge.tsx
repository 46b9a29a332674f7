import { VisuallyHidden } from '@mantine/core';
import {
  EdgeLabelRenderer,
  useInternalNode,
  type Edge,
  type EdgeProps,
  type InternalNode,
} from '@xyflow/react';
import { memo } from 'react';
import { boxAt } from '@/cluster/border';
import { lineOf, pointAlong, type Spot } from '@/cluster/labels';
import { beside, pathOf } from '@/cluster/polyline';
import type { Point } from '@/cluster/point';
import { namedWords } from '@/format/links';
import { percent } from '@/format/units';
import { describeRate, utilisation } from '@/run/data/linkUse';
import type { LinkView } from '@/run/data/snapshot';
import type { Cards } from './positions';
import classes from './topology.module.css';

export type LinkEdgeType = Edge<
  {
    view: LinkView;
    spot: Spot;
    bends: readonly Point[];
    cards: Cards;
    selected: boolean;
    onSelect: (name: string) => void;
  },
  'link'
>;

/** Distance of each direction's line from the middle of the link. */
const OFFSET = 3.5;
const BUSY = 0.005;

/** A link: one line per direction, with width and motion by its utilisation. */
export const LinkEdge = memo(function LinkEdge({ source, target, data }: EdgeProps<LinkEdgeType>) {
  const from = useInternalNode(source);
  const to = useInternalNode(target);
  if (!from || !to || !data) return null;
  const { view, spot, bends, cards, selected, onSelect } = data;
  const line = lineOf(boxOf(from), boxOf(to), bends, spot.lane);
  const label = pointAlong(line, spot.along, spot.aside);
  const path = (sign: number) => pathOf(beside(line, sign * OFFSET));
  const use = Math.max(utilisation(view.forward), utilisation(view.backward));
  const text = view.up ? describeRate(view) : 'down';
  const isQuiet = !selected && view.up;
  const isDot = isQuiet && spot.small;
  // Among tiles only a link that is cut or chosen has a label; the controls list all of them.
  const hasLabel = cards !== 'tile' || !isQuiet;
  return (
    <>
      <g className={classes.link} data-down={!view.up || undefined} data-selected={selected || undefined}>
        <path d={pathOf(line)} className={classes.hit} onClick={() => onSelect(view.name)} />
        <path d={path(1)} className={classes.wire} />
        <path d={path(-1)} className={classes.wire} />
        {view.up && <Flow path={path(1)} use={utilisation(view.forward)} way="forward" />}
        {view.up && <Flow path={path(-1)} use={utilisation(view.backward)} way="backward" />}
      </g>
      {hasLabel && (
        <EdgeLabelRenderer>
          <button
            type="button"
            className={`${classes.rate} nodrag nopan`}
            data-down={!view.up || undefined}
            data-selected={selected || undefined}
            data-small={isDot || undefined}
            data-testid={`link-${view.name}`}
            title={`${namedWords(view.name)}: ${text}`}
            onClick={() => onSelect(view.name)}
            style={{
              transform: `translate(-50%, -50%) translate(${label.x}px, ${label.y}px)`,
            }}
          >
            <VisuallyHidden>
              {namedWords(view.name)}: {isDot && text}
            </VisuallyHidden>
            {!isDot && text}
            {!isDot && cards === 'full' && view.up && use > BUSY && (
              <span className={classes.dim}>{percent(use)}</span>
            )}
          </button>
        </EdgeLabelRenderer>
      )}
    </>
  );
});

function Flow({ path, use, way }: { path: string; use: number; way: 'forward' | 'backward' }) {
  if (use < BUSY) return null;
  return (
    <path
      d={path}
      className={classes.flow}
      data-way={way}
      style={{ strokeWidth: 1.5 + 4 * use, animationDuration: `${1.4 - use}s` }}
    />
  );
}

const boxOf = ({ internals, measured }: InternalNode) => boxAt(internals.positionAbsolute, measured);
