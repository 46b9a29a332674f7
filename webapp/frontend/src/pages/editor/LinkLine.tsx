import {
  BaseEdge,
  EdgeLabelRenderer,
  type EdgeProps,
  type InternalNode,
  useInternalNode,
} from '@xyflow/react';
import { memo } from 'react';
import type { LinkSpec } from '@/api/types';
import { percent, rate, seconds } from '@/format/units';
import { borderPoint, type Box } from '@/cluster/border';
import { editor } from './editorStore';
import type { LinkEdge } from './flow';
import classes from './nodes.module.css';

/** A link as a line between the borders of its nodes, with its label in the middle. */
export const LinkLine = memo(({ id, source, target, selected, data }: EdgeProps<LinkEdge>) => {
  const [a, b] = [useInternalNode(source), useInternalNode(target)];
  if (!a || !b || !data) return null;
  const [boxA, boxB] = [boxOf(a), boxOf(b)];
  const [from, to] = [borderPoint(boxA, boxB.center), borderPoint(boxB, boxA.center)];
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  const { link, off, problem } = data;
  const color = problem
    ? 'var(--loom-bad)'
    : selected
      ? 'var(--mantine-primary-color-filled)'
      : 'var(--loom-wire)';
  const extras = [
    link.jitter_s > 0 && `± ${seconds(link.jitter_s)}`,
    link.loss_frac > 0 && `${percent(link.loss_frac)} packet loss`,
  ];
  return (
    <>
      <BaseEdge
        id={id}
        path={`M ${from.x} ${from.y} L ${to.x} ${to.y}`}
        interactionWidth={22}
        style={{
          stroke: color,
          strokeWidth: widthOf(link.bit_per_s) + (selected ? 1 : 0),
          strokeDasharray: off ? '5 5' : undefined,
          opacity: off ? 0.5 : 1,
        }}
      />
      <EdgeLabelRenderer>
        <div
          className={classes.label}
          data-testid={`link-${id}`}
          data-problem={problem ? 'yes' : undefined}
          title={problem || id}
          onClick={(event) => selectLink(id, event.shiftKey || event.ctrlKey || event.metaKey)}
          style={{
            transform: `translate(-50%, -50%) translate(${x}px, ${y}px)`,
            opacity: off ? 0.55 : 1,
            borderColor: problem || selected ? color : undefined,
          }}
        >
          <b>{rates(link)}</b>
          {link.delay_s > 0 && <span>{seconds(link.delay_s)}</span>}
          {extras.map((extra) => extra && <span key={extra}>{extra}</span>)}
        </div>
      </EdgeLabelRenderer>
    </>
  );
});

function selectLink(id: string, more: boolean) {
  const { select, selection } = editor();
  select(
    more
      ? { ...selection, links: [...selection.links.filter((name) => name !== id), id] }
      : { nodes: [], links: [id] },
  );
}

function boxOf(node: InternalNode): Box {
  const { width = 0, height = 0 } = node.measured;
  const { x, y } = node.internals.positionAbsolute;
  return { center: { x: x + width / 2, y: y + height / 2 }, width, height };
}

/** `30 ⇄ 50 Mbit/s`: from a to b, then back; one unit if both have the same. */
function rates({ bit_per_s, reverse_bit_per_s }: LinkSpec): string {
  if (reverse_bit_per_s === null || reverse_bit_per_s === bit_per_s) return rate(bit_per_s);
  return `${rate(bit_per_s)} ⇄ ${rate(reverse_bit_per_s)}`.replace(/^(\S+) (\S+)( ⇄ \S+ \2)$/, '$1$3');
}

/** Line width by decade of the rate: 1 Mbit/s thin, 10 Gbit/s thick. */
function widthOf(bitPerS: number): number {
  return Math.min(5, Math.max(1.2, Math.log10(bitPerS) - 6));
}
