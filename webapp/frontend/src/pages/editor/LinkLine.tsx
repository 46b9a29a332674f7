import {
  BaseEdge,
  EdgeLabelRenderer,
  type EdgeProps,
  type InternalNode,
  useInternalNode,
} from '@xyflow/react';
import { memo } from 'react';
import { rate } from '@/format/units';
import { boxAt } from '@/cluster/border';
import { lineOf, pointAlong } from '@/cluster/labels';
import { both, conditionsOf, extrasOf } from './linkText';
import { BendHandles } from './BendHandles';
import { editor } from './editorStore';
import type { LinkEdge } from './flow';
import classes from './nodes.module.css';

/** A link as a line between the borders of its nodes, through its bends, with its label where there is room. */
export const LinkLine = memo(({ id, source, target, selected, data }: EdgeProps<LinkEdge>) => {
  const [a, b] = [useInternalNode(source), useInternalNode(target)];
  if (!a || !b || !data) return null;
  const { link, off, problem, bends, spot } = data;
  const line = lineOf(boxOf(a), boxOf(b), bends, spot.lane);
  const { x, y } = pointAlong(line, spot.along, spot.aside);
  const color = problem
    ? 'var(--loom-bad)'
    : selected
      ? 'var(--mantine-primary-color-filled)'
      : 'var(--loom-wire)';
  return (
    <>
      <BaseEdge
        id={id}
        path={`M ${line.map((point) => `${point.x} ${point.y}`).join(' L ')}`}
        interactionWidth={22}
        style={{
          stroke: color,
          strokeLinejoin: 'round',
          strokeWidth: widthOf(link.bit_per_s) + (selected ? 1 : 0),
          strokeDasharray: off ? '5 5' : undefined,
          opacity: off ? 0.5 : 1,
        }}
      />
      <EdgeLabelRenderer>
        <div
          className={classes.label}
          data-id={id}
          data-testid={`link-${id}`}
          data-problem={problem ? 'yes' : undefined}
          title={problem || conditionsOf(link)}
          onClick={(event) => selectLink(id, event.shiftKey || event.ctrlKey || event.metaKey)}
          style={{
            transform: `translate(-50%, -50%) translate(${x}px, ${y}px)`,
            opacity: off ? 0.55 : 1,
            borderColor: problem || selected ? color : undefined,
          }}
        >
          <b>{both(link.bit_per_s, link.reverse_bit_per_s, rate)}</b>
          {extrasOf(link).map((extra) => (
            <span key={extra}>{extra}</span>
          ))}
        </div>
        {selected && <BendHandles name={id} points={bends} />}
      </EdgeLabelRenderer>
    </>
  );
});

function selectLink(id: string, more: boolean) {
  const { select, selection } = editor();
  const rest = selection.links.filter((name) => name !== id);
  select(
    more
      ? { ...selection, links: rest.length < selection.links.length ? rest : [...rest, id] }
      : { nodes: [], links: [id] },
  );
}

const boxOf = ({ internals, measured }: InternalNode) => boxAt(internals.positionAbsolute, measured);

/** Line width by decade of the rate: 1 Mbit/s thin, 10 Gbit/s thick. */
function widthOf(bitPerS: number): number {
  return Math.min(5, Math.max(1.2, Math.log10(bitPerS) - 6));
}
